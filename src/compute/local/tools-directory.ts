import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { namesIn } from '../../runtime/if-present.ts'
import { makeReadable } from '../../runtime/make-readable.ts'
import { PACKAGE_SETTINGS } from '../package-settings.ts'
import {
  goScript,
  PROGRAM_FILES,
  PROGRAM_NAMES,
  PROGRAMS_DIRECTORY,
  programScript,
  UNFINISHED,
} from '../programs/programs.ts'
import { PACKAGE_VARIABLES } from '../sandbox.ts'

/** Where npm, pip, uv and pipx, Go, Cargo, Bun, and pnpm install programs for one user, relative to the home directory. */
const USER_BINS = ['.local/bin', 'go/bin', '.cargo/bin', '.bun/bin', '.local/share/pnpm']

/** The directory of tools that are before those of the machine on PATH, relative to that of all. */
const FRONT = 'front'

/** Returns what reports whether a program of this machine is on a PATH. */
export const isOn =
  (path: string) =>
  (program: string): boolean =>
    Bun.which(program, { PATH: path }) !== null

/** The directory of tools for sandboxes with a file tree of their own, relative to the data directory. */
export const SANDBOX_TOOLS = 'sandbox/opt'

/**
 * A directory with tools for every sandbox, even if the machine lacks them: `bun`, `bunx` and `node`, which all run the Bun
 * inside berth's own executable, `python` if the machine has a `python3`, `sudo` for commands that are root anyway, and
 * settings that point a package manager to a registry. It holds a few lines of text; sandboxes see it read-only.
 *
 * Only these scripts set the variable that turns the executable into Bun: with it, berth could not start as berth.
 */
export class ToolsDirectory {
  /** Absolute path of the directory. */
  readonly path: string
  /** Absolute path of it as commands see it. */
  readonly pathInSandbox: string
  readonly #program: string
  #prepared = false

  /**
   * @param path absolute path of the directory
   * @param program absolute path of berth's executable, or of Bun, as commands see it
   * @param pathInSandbox where commands see the directory, if elsewhere
   */
  constructor(path: string, program: string, pathInSandbox = path) {
    this.path = path
    this.pathInSandbox = pathInSandbox
    this.#program = program
  }

  /**
   * Returns a PATH with the tools as its last entry, so the machine's own tools take precedence, and those that a server has
   * installed for itself. Only scripts that start one of the machine's are before these.
   *
   * @param home absolute path of the home directory of commands
   */
  extend(path: string, home: string): string {
    const installed = USER_BINS.map((directory) => join(home, directory))
    const [before, after] = [FRONT, 'bin'].map((directory) => join(this.pathInSandbox, directory))
    return [before, path, ...installed, after].join(':')
  }

  /**
   * Writes the missing files, again only if the directory is gone. Running sandboxes may be using it.
   *
   * @param has reports whether commands have a program on their PATH, without the tools
   */
  prepare(has: (program: string) => boolean): void {
    if (this.#prepared && existsSync(join(this.path, 'bin'))) return
    // Bun takes its role from the name under which it is started.
    const link = join(this.pathInSandbox, 'lib/node')
    keepLink(join(this.path, 'lib/node'), this.#program)
    keepScript(join(this.path, 'bin/bun'), bunScript(quote(this.#program), '"$1"'))
    keepScript(join(this.path, 'bin/bunx'), bunScript(`${quote(this.#program)} x`, 'x'))
    keepScript(join(this.path, 'bin/node'), nodeScript(quote(this.#program), quote(link)))
    // Distributions have no program of this name, which scripts and Procfiles call.
    if (!has('python3')) rmSync(join(this.path, 'bin/python'), { force: true })
    else keepScript(join(this.path, 'bin/python'), 'exec python3 "$@"\n')
    keepScript(join(this.path, 'bin/sudo'), SUDO_SCRIPT)
    const front = quote(join(this.pathInSandbox, FRONT))
    const before = {
      deno: denoScript(findBehind(front, 'deno')),
      go: goScript(quote(this.#program), quote(this.pathInSandbox), findBehind(front, 'go')),
    }
    for (const [name, script] of Object.entries(before)) {
      const file = join(this.path, FRONT, name)
      if (!has(name)) rmSync(file, { force: true })
      else keepScript(file, script)
    }
    for (const name of PROGRAM_NAMES) {
      const script = programScript(name, quote(this.#program), quote(this.pathInSandbox))
      keepScript(join(this.path, 'bin', name), script)
    }
    const files = { ...PACKAGE_SETTINGS, ...PROGRAM_FILES }
    for (const [path, text] of Object.entries(files)) keep(join(this.path, path), text, 0o444)
    const programs = join(this.path, PROGRAMS_DIRECTORY)
    // What a killed berth was writing.
    for (const name of namesIn(programs))
      if (name.startsWith(UNFINISHED)) rmSync(join(programs, name), { recursive: true, force: true })
    mkdirSync(programs, { recursive: true })
    makeReadable(this.path)
    this.#prepared = true
  }
}

/** Defines a function that reports whether a file in the working directory, above it or at home names another registry. */
const NAMES_REGISTRY = `names_registry() {
  at=$PWD
  while :; do
    for file in "$at/.npmrc" "$at/bunfig.toml" "$HOME/.npmrc" "$HOME/.bunfig.toml"; do
      [ -f "$file" ] && grep -E '^[[:space:]]*(\\[install\\.)?registry' "$file" | grep -Eqv 'registry\\.(npmjs\\.org|yarnpkg\\.com)' && return 0
    done
    above=\${at%/*}
    [ "$above" != "$at" ] || return 1
    at=$above
  done
}
`

/**
 * Returns the shell script that commands call as `bun` and `bunx`. For Bun, variables override the files of a project. So
 * commands that need packages get berth's mirror only if no file in the directory, above it or at home names a registry.
 *
 * @param subcommand the first argument of Bun, as the script has it
 */
const bunScript = (command: string, subcommand: string): string => `export BUN_BE_BUN=1
${NAMES_REGISTRY}case ${subcommand} in
  install | i | ci | add | a | update | remove | rm | x | create | c | outdated | info | pm)
    if [ -n "$${PACKAGE_VARIABLES.url}" ] && [ -z "\${BUN_CONFIG_REGISTRY+x}" ] && ! names_registry; then
      export BUN_CONFIG_REGISTRY="$${PACKAGE_VARIABLES.url}" BUN_CONFIG_TOKEN="$${PACKAGE_VARIABLES.token}"
    fi ;;
esac
exec ${command} "$@"
`

/**
 * Returns the shell script that commands call as `deno`: it starts the machine's Deno, which takes no other registry from
 * settings weaker than a project's. npm reads the variable too, so it is set for Deno alone.
 *
 * @param find lines that set `berth_program` to the machine's Deno
 */
const denoScript = (
  find: string,
): string => `${NAMES_REGISTRY}if [ -n "$${PACKAGE_VARIABLES.url}" ] && [ -z "\${NPM_CONFIG_REGISTRY+x}" ] && ! names_registry; then
  export NPM_CONFIG_REGISTRY="\${${PACKAGE_VARIABLES.url}}-/$${PACKAGE_VARIABLES.token}/npm/"
fi
${find}exec "$berth_program" "$@"
`

/**
 * Returns the lines of a shell script that set `berth_program` to what its name means behind it on PATH. A name that a user has
 * exported would change for the program.
 *
 * @param directory of the script, as the script has it
 */
const findBehind = (directory: string, name: string): string => `berth_path=:$PATH: berth_front=${directory}
berth_path=\${berth_path%%":$berth_front:"*}:\${berth_path#*":$berth_front:"}
berth_program=$(PATH=$berth_path; command -v ${name})
`

/**
 * Returns the shell script that commands call as `node`: it runs Bun in the place of Node.js. Under that name Bun knows neither
 * `--version` nor a script on standard input.
 */
const nodeScript = (bun: string, node: string): string => `export BUN_BE_BUN=1
case "\${1--}" in
  -v | --version) exec ${node} -p process.version ;;
  -) [ -t 0 ] || { [ $# -eq 0 ] || shift; exec ${bun} run - "$@"; } ;;
esac
exec ${node} "$@"
`

/**
 * What commands call as `sudo` where there is none, as in most images. Commands that are root run what they ask for, so that
 * instructions of others work as they are written; the others learn how they become root.
 */
const SUDO_SCRIPT = `if [ "$(id -u)" != 0 ]; then
  echo 'sudo: commands of this server are not root. "berth servers create --root" makes one whose commands are, on an engine: berth serve --compute docker --allow-root' >&2
  exit 1
fi
while :; do
  case "\${1-}" in
    -u | --user) [ "\${2-}" = root ] || { echo 'sudo: berth lets commands be root alone here.' >&2; exit 1; }; shift 2 ;;
    -E | -H | -n | --preserve-env | --non-interactive) shift ;;
    --) shift; break ;;
    -*) echo "sudo: berth's own knows -E, -H, -n and -u root, and not $1. Install sudo: apt-get install sudo" >&2; exit 1 ;;
    *) break ;;
  esac
done
exec env "$@"
`

/** Writes an executable shell script, unless it is there. */
const keepScript = (path: string, text: string): void => keep(path, `#!/bin/sh\n${text}`, 0o555)

/** Writes a file, unless it is there with this text. */
function keep(path: string, text: string, mode: number): void {
  if (reading(() => readFileSync(path, 'utf8')) !== text)
    replace(path, (fresh) => writeFileSync(fresh, text, { mode }))
}

function keepLink(path: string, target: string): void {
  if (reading(() => readlinkSync(path)) !== target) replace(path, (fresh) => symlinkSync(target, fresh))
}

/** At once: a command that starts in between finds the old one or the new one. */
function replace(path: string, write: (fresh: string) => void): void {
  const fresh = `${path}.new`
  mkdirSync(dirname(path), { recursive: true })
  rmSync(fresh, { force: true })
  write(fresh)
  renameSync(fresh, path)
}

function reading(read: () => string): string | null {
  try {
    return read()
  } catch {
    // There is none yet, or it is no such file: it is written anew.
    return null
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Returns the absolute path of a directory of tools as berth sees it.
 *
 * @param tools absolute path of it as commands see it
 */
export const toolsOnHost = (dataDir: string, tools: string): string =>
  tools.startsWith(dataDir) ? tools : join(dataDir, SANDBOX_TOOLS)
