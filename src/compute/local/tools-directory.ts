import {
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { NPM_SETTINGS, NPM_SETTINGS_FILE } from '../npm-settings.ts'

/**
 * A directory with the tools that every sandbox has though the machine may not: `bun`, `bunx` and `node`, all of them the
 * Bun that berth's own executable is, and settings by which a package manager can be sent to a registry. It holds a few
 * lines of text, and sandboxes see it read-only.
 *
 * The variable by which the executable becomes Bun is set for these tools alone: with it, no berth would be berth.
 */
export class ToolsDirectory {
  /** Absolute path of the directory. */
  readonly path: string
  /** Absolute path of it as commands see it. */
  readonly pathInSandbox: string
  readonly #program: string
  #prepared = false

  /**
   * @param path where it lies
   * @param program absolute path of berth's executable, or of Bun, as commands see it
   * @param seenAs where commands see it, if not where it lies
   */
  constructor(path: string, program: string, seenAs = path) {
    this.path = path
    this.pathInSandbox = seenAs
    this.#program = program
  }

  /** A PATH with the tools at its end: what the machine has itself comes first. */
  extend(path: string): string {
    return `${path}:${join(this.pathInSandbox, 'bin')}`
  }

  /** Writes what is not there yet, once. Sandboxes that run may be using it. */
  prepare(): void {
    if (this.#prepared) return
    // Bun goes by the name that it is started under.
    const link = join(this.pathInSandbox, 'lib/node')
    keepLink(join(this.path, 'lib/node'), this.#program)
    keepScript(join(this.path, 'bin/bun'), `BUN_BE_BUN=1 exec ${quote(this.#program)} "$@"\n`)
    keepScript(join(this.path, 'bin/bunx'), `BUN_BE_BUN=1 exec ${quote(this.#program)} x "$@"\n`)
    keepScript(join(this.path, 'bin/node'), nodeScript(quote(this.#program), quote(link)))
    keep(join(this.path, NPM_SETTINGS_FILE), NPM_SETTINGS, 0o444)
    this.#prepared = true
  }
}

/** As Node.js, Bun knows neither `--version` nor a script on standard input. */
const nodeScript = (bun: string, node: string): string => `export BUN_BE_BUN=1
case "\${1--}" in
  -v | --version) exec ${node} -p process.version ;;
  -) [ -t 0 ] || { [ $# -eq 0 ] || shift; exec ${bun} run - "$@"; } ;;
esac
exec ${node} "$@"
`

const keepScript = (path: string, text: string): void => keep(path, `#!/bin/sh\n${text}`, 0o555)

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
    return null
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
