import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { entriesOf, namesIn, realPathOrNull } from '../../runtime/if-present.ts'
import { runHelper } from '../../runtime/run-helper.ts'
import {
  isShown,
  isSystem,
  PROGRAMS,
  type ShownTools,
  selectMachineTools,
  type ToolPlaces,
} from './machine-tools.ts'
import { recognise, type ToolName } from './toolchain-kinds.ts'
import { byVersion } from './versions.ts'

/** One version of a tool that servers see. Its paths are the same on the machine and in servers. */
export interface Toolchain {
  /** A `ToolName`, or the name of another command. */
  readonly tool: string
  /** Such as `3.12.1`; that of Rust for cargo. */
  readonly version: string
  /** Absolute path of the program. */
  readonly path: string
  /**
   * Absolute path of the directory that selects it if it is first on PATH; null if another version has the tool's usual
   * name there, so only `path` selects it.
   */
  readonly bin: string | null
  /** Whether a command gets it that calls the tool by its usual name. */
  readonly isDefault: boolean
  /** How it was found: by the name of a version manager, by `PATH`, or as a part of the `system`. */
  readonly source: string
}

/** The usual names of tools, the first one first. */
const USUAL_NAMES: Readonly<Record<ToolName, readonly string[]>> = {
  python: ['python3', 'python'],
  node: ['node', 'nodejs'],
  go: ['go'],
  java: ['java'],
  mvn: ['mvn'],
  gradle: ['gradle'],
  cargo: ['cargo'],
  ruby: ['ruby'],
  php: ['php'],
  bun: ['bun'],
  deno: ['deno'],
}

/** Reports whether a command's name is that of a tool of which several versions are known. */
export const isToolName = (name: string): name is ToolName => Object.hasOwn(USUAL_NAMES, name)

/** Returns the command by which a tool is called. */
export const commandOf = (tool: string): string => (isToolName(tool) ? (USUAL_NAMES[tool][0] ?? tool) : tool)

/** Where distributions put further versions, which PATH does not name. */
const FURTHER = ['/usr/lib/jvm', '/usr/lib', '/usr/local'] as const

/** Milliseconds that a program may take to print its version. */
const VERSION_MS = 5_000

/** Versions that programs have printed, by the program and its time of change. */
export type PrintedVersions = Map<string, string | null>

/** What is looked for, and how. */
interface ToolchainSearch {
  /** As for `selectMachineTools`; `selected` by default. */
  readonly sees?: 'selected' | 'all'
  /** The tools that are looked for; all by default. */
  readonly of?: readonly ToolName[]
  /** The versions that are known from earlier searches; new ones are added. */
  readonly printed?: PrintedVersions
}

/**
 * Returns the toolchains that servers of a machine see: by tool, the default first, then the newest first. Reads versions from files where they
 * are, and runs other programs with `--version`. Writes nothing, and uses no network.
 */
export async function findToolchains(
  machine: ToolPlaces,
  { sees = 'selected', of, printed = new Map() }: ToolchainSearch = {},
): Promise<Toolchain[]> {
  const tools = selectMachineTools(machine, sees)
  const found = new Map<string, Candidate>()
  for (const candidate of candidatesOf(tools, sees)) {
    const isWanted = of === undefined || of.includes(candidate.tool)
    if (isWanted && !found.has(candidate.real)) found.set(candidate.real, candidate)
  }
  const defaults = new Set(Object.values(USUAL_NAMES).map((names) => firstOf(tools.path, names)))
  const toolchains = await Promise.all(
    [...found.values()].map(async ({ real, tool, path, source }): Promise<Toolchain[]> => {
      const known = recognisedVersion(tool, real)
      const version = known ?? (await printedVersion(tool, real, printed))
      if (version === null) return []
      // A directory of its own changes nothing for other tools.
      const own = [dirname(real), dirname(path)]
      const bin = own.find((directory) => firstOf([directory], USUAL_NAMES[tool]) === real) ?? null
      return [{ tool, version, path, bin, isDefault: defaults.has(real), source }]
    }),
  )
  return toolchains
    .flat()
    .sort(
      (a, b) =>
        a.tool.localeCompare(b.tool) ||
        Number(b.isDefault) - Number(a.isDefault) ||
        byVersion(b.version, a.version),
    )
}

/** A program that may be a toolchain's. */
interface Candidate {
  tool: ToolName
  path: string
  /** Its path without links. */
  real: string
  source: string
}

/** Returns the programs of PATH, of recognised toolchains, and of places where distributions put further ones. */
function candidatesOf({ path, shown, toolchains }: ShownTools, sees: 'selected' | 'all'): Candidate[] {
  const isSeen = (real: string): boolean => sees === 'all' || isShown(real, shown)
  const sourceOf = (real: string): string =>
    toolchains.find(({ prefix }) => real.startsWith(`${prefix}/`))?.source ??
    (isSystem(real) ? 'system' : 'PATH')
  const candidate = (program: string): Candidate[] => {
    const tool = toolOf(basename(program))
    const real = realPathOrNull(program)
    if (tool === null || real === null || !isSeen(real)) return []
    return [{ tool, path: program, real, source: sourceOf(real) }]
  }
  // Of several names of one program, the usual one comes first.
  const inPath = path.flatMap((directory) => {
    const names = namesIn(directory).filter((name) => PROGRAMS.test(name))
    return names.sort((a, b) => rankOf(a) - rankOf(b)).flatMap((name) => candidate(join(directory, name)))
  })
  const further = FURTHER.flatMap((directory) =>
    entriesOf(directory).flatMap((entry) => {
      const isToolchain = directory === '/usr/lib/jvm' || /^go(?:-\d|$)/.test(entry.name)
      const prefix = isToolchain ? realPathOrNull(join(directory, entry.name)) : null
      const program = prefix === null ? null : recognise(prefix)?.program
      return program ? candidate(program) : []
    }),
  )
  return [...inPath, ...toolchains.flatMap(({ program }) => candidate(program)), ...further]
}

/** Returns the tool that a program's name belongs to; null for others, such as compilers beside their tool. */
function toolOf(name: string): ToolName | null {
  if (/^(?:python|pypy)/.test(name)) return 'python'
  const [plain = ''] = /^[a-z]+/.exec(name) ?? []
  if (plain === 'nodejs') return 'node'
  return isToolName(plain) ? plain : null
}

/** Returns the place of a name among a tool's usual ones. */
function rankOf(name: string): number {
  const tool = toolOf(name)
  const rank = tool === null ? -1 : USUAL_NAMES[tool].indexOf(name)
  return rank === -1 ? Number.MAX_SAFE_INTEGER : rank
}

/** Returns the program that a name means on a PATH, without links; null if there is none. */
function firstOf(path: readonly string[], names: readonly string[]): string | null {
  for (const name of names) {
    for (const directory of path) {
      const real = realPathOrNull(join(directory, name))
      if (real !== null) return real
    }
  }
  return null
}

/** Returns the version of a program by the files of its toolchain; null if it is in none, or they do not say. */
function recognisedVersion(tool: ToolName, real: string): string | null {
  const toolchain = recognise(dirname(dirname(real)))
  // A directory such as /usr/bin has programs of many.
  if (toolchain?.tool !== tool || realPathOrNull(toolchain.program) !== real) return null
  return toolchain.version()
}

async function printedVersion(
  tool: ToolName,
  program: string,
  printed: PrintedVersions,
): Promise<string | null> {
  const key = `${program} ${statSync(program, { throwIfNoEntry: false })?.mtimeMs}`
  const known = printed.get(key)
  if (known !== undefined) return known
  const version = await askVersion(tool, program)
  printed.set(key, version)
  return version
}

async function askVersion(tool: ToolName, program: string): Promise<string | null> {
  // The version of Rust is that of its compiler.
  const asked = tool === 'cargo' ? join(dirname(program), 'rustc') : program
  try {
    const { stdout, stderr } = await runHelper([asked, ...versionArguments(tool)], {
      cwd: '/',
      // A stand-in of a version manager finds no manager, and Go downloads no other version of itself.
      env: { PATH: `${dirname(program)}:/usr/bin:/bin`, HOME: '/nonexistent', GOTOOLCHAIN: 'local' },
      timeoutMs: VERSION_MS,
    })
    return versionIn(`${stdout}\n${stderr}`)
  } catch {
    return null
  }
}

/** Returns the arguments with which a tool prints its version. */
export function versionArguments(program: string): string[] {
  const name = basename(program)
  if (/^(?:go|hugo)$/.test(name)) return ['version']
  // That of Java 8 has no long option.
  return [/^java$/.test(name) ? '-version' : '--version']
}

/** Returns the first version in what a program printed. */
export const versionIn = (text: string): string | null =>
  /(?:^|[^\d.])(\d+\.\d+(?:\.\d+)*(?:[-+.]?(?:rc|beta|alpha|nightly|a|b)[\w.]*)?)/.exec(text)?.[1] ?? null
