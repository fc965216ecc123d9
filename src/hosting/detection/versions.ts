import { byVersion, commandOf, type Toolchain } from '../../compute/tools.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import type { FoundTool } from '../app-runtime/plan.ts'
import { imageRemedy, isMissing, titleOf } from '../tool-names.ts'
import type { Machine, ToolCheck } from './machine.ts'
import type { SourceDirectory } from './source.ts'

/** A tool that an app needs, and the version that one of its files asks for. */
export interface ToolNeed {
  /** The command's name: `python3`, `go`, `node`, `java`, … */
  readonly name: string
  /** As the file says it; null for any version. */
  readonly wanted: string | null
  /** The file, relative to the source; null where none says so. */
  readonly wantedBy: string | null
  /** Whether the app cannot run with another version. A pin is not strict: the nearest version is taken for it. */
  readonly isStrict: boolean
  /** Reports whether a version, such as `3.12.4`, is what the file asks for. */
  readonly fits: (version: string) => boolean
}

/** The tools of an app as they were found. */
export interface ChosenTools {
  readonly tools: readonly FoundTool[]
  /** Directories to put first on PATH, so that the chosen versions are run. */
  readonly path: readonly string[]
  /** The program of each tool that is to be called by its path, since PATH cannot select it. */
  readonly programs: ReadonlyMap<string, string>
  readonly warnings: readonly string[]
  /** Why the app cannot run with what there is: one sentence; null if it can. */
  readonly problem: string | null
}

/** Returns a need of any version of a tool. */
export const anyVersion = (name: string, wantedBy: string | null = null): ToolNeed => ({
  ...{ name, wanted: null, wantedBy, isStrict: false },
  fits: () => true,
})

/** Returns a need of a version that begins with `wanted`: `3`, `3.12` or `3.12.4`. */
export const pinned = (name: string, wanted: string, wantedBy: string): ToolNeed => ({
  ...{ name, wanted, wantedBy, isStrict: false },
  fits: (version) => startsWith(version, numbersOf(wanted)),
})

/** Returns a need of a version that is not older. */
export const atLeast = (name: string, wanted: string, wantedBy: string, isStrict: boolean): ToolNeed => ({
  ...{ name, wanted, wantedBy, isStrict },
  fits: (version) => byVersion(version, wanted) >= 0,
})

/** Returns a need of a version in a range of npm, such as `>=18 <21`. */
export const inRange = (name: string, wanted: string, wantedBy: string, isStrict: boolean): ToolNeed => ({
  ...{ name, wanted, wantedBy, isStrict },
  fits: (version) => Bun.semver.satisfies(threeNumbers(version), wanted),
})

/** Returns a strict need of a version that specifiers of Python allow (PEP 440, and `^` of Poetry). */
export const bySpecifiers = (name: string, wanted: string, wantedBy: string): ToolNeed => {
  const alternatives = wanted.split('||').map((all) => all.split(',').map((one) => one.trim()))
  return {
    ...{ name, wanted, wantedBy, isStrict: true },
    fits: (version) => alternatives.some((all) => all.every((one) => matchesSpecifier(version, one))),
  }
}

/** Returns the needs of a tool that files state; any version of it if none does. */
export function needsOf(name: string, stated: readonly (ToolNeed | null)[]): ToolNeed[] {
  const needs = stated.filter((need) => need !== null)
  return needs.length === 0 ? [anyVersion(name)] : needs
}

/** Where a language's versions are pinned. */
interface PinFiles {
  /** Files whose text is the version, or a line `NAME-VERSION`. */
  readonly files: readonly string[]
  /** Its names in `.tool-versions` and `mise.toml`. */
  readonly names: readonly string[]
}

const PINS = {
  cargo: { files: [], names: ['rust'] },
  deno: { files: ['.deno-version', '.dvmrc'], names: ['deno'] },
  go: { files: ['.go-version'], names: ['go', 'golang'] },
  java: { files: ['.java-version'], names: ['java'] },
  node: { files: ['.nvmrc', '.node-version'], names: ['node', 'nodejs'] },
  php: { files: ['.php-version'], names: ['php'] },
  python: { files: ['.python-version', 'runtime.txt'], names: ['python'] },
  ruby: { files: ['.ruby-version'], names: ['ruby'] },
} satisfies Record<string, PinFiles>

/**
 * Returns the version of a tool that a file in a directory, or in one above it, pins; null if none does. The nearest file
 * decides, and in one directory the language's own.
 *
 * @param tool the command's name
 */
export async function readPin(
  directory: SourceDirectory,
  tool: keyof typeof PINS,
): Promise<(ToolNeed & { wanted: string; wantedBy: string }) | null> {
  const { files, names }: PinFiles = PINS[tool]
  for (const at of [directory, ...directory.above]) {
    for (const file of [...files, '.tool-versions', 'mise.toml', '.mise.toml']) {
      const text = await at.text(file)
      if (text === null) continue
      const stated = file.endsWith('mise.toml')
        ? names.map((name) => miseVersion(text, name)).find((version) => version !== null)
        : file === '.tool-versions'
          ? names.map((name) => new RegExp(`^${name}[ \\t]+(\\S+)`, 'm').exec(text)?.[1]).find(Boolean)
          : text.split(/\r?\n/).find((line) => /^[^#\s]/.test(line))
      // `lts/*`, `system` and the like name no version.
      const wanted = /(?:^|[-_a-z])(\d+(?:\.\d+){0,3})/i.exec(stated ?? '')?.[1]
      const wantedBy = at.pathOf(file)
      if (wanted !== undefined) return { ...pinned(tool, wanted, wantedBy), wanted, wantedBy }
    }
  }
  return null
}

function miseVersion(text: string, name: string): string | null {
  try {
    const value = fieldsOf(fieldsOf(Bun.TOML.parse(text)).tools)[name]
    const [first] = Array.isArray(value) ? value : [value]
    const version = typeof first === 'object' ? fieldsOf(first).version : first
    return typeof version === 'string' || typeof version === 'number' ? String(version) : null
  } catch {
    return null
  }
}

/**
 * Chooses a version for each tool that an app needs: the one on PATH if it fits, else the newest that does. A pin that
 * nothing fits takes the nearest version, with a warning. A strict need that nothing fits is a problem.
 */
export async function chooseTools(needs: readonly ToolNeed[], machine: Machine): Promise<ChosenTools> {
  const tools: FoundTool[] = []
  const path: string[] = []
  const programs = new Map<string, string>()
  const warnings: string[] = []
  let problem: string | null = null
  for (const [name, wishes] of Map.groupBy(needs, (need) => need.name)) {
    const available = await machine.toolchains(name)
    const allowed = available.filter(({ version }) =>
      wishes.every((wish) => !wish.isStrict || wish.fits(version)),
    )
    const chosen = best(allowed, wishes)
    for (const { wanted, wantedBy } of wishes)
      tools.push({ name, wanted, wantedBy, found: chosen?.version ?? null })
    const check = chosen === null && available.length > 0 ? null : await checkProgram(machine, name, chosen)
    if (check !== null && !check.works) {
      problem ??= `This app needs ${titleOf(name)}; ${chosen?.path ?? name} is installed, but does not run on servers: ${check.error} "berth doctor" says what servers see of this machine's tools.`
      continue
    }
    if (chosen === null) {
      problem ??= problemOf(name, wishes, available, machine.hasImage ?? false)
      continue
    }
    if (!chosen.isDefault && chosen.bin !== null) path.push(chosen.bin)
    else if (!chosen.isDefault) programs.set(name, chosen.path)
    const unmet = wishes.find(({ fits }) => !fits(chosen.version))
    if (unmet) {
      warnings.push(
        `${unmet.wantedBy} asks for ${titleOf(name)} ${unmet.wanted}; ${chosen.version} is the nearest here.`,
      )
    }
  }
  return { tools, path, programs, warnings, problem }
}

/** Asks a program whether it runs, whose files say that it is installed; null if there is none. */
async function checkProgram(
  machine: Machine,
  name: string,
  chosen: Toolchain | null,
): Promise<ToolCheck | null> {
  if (chosen !== null) return machine.check(chosen.path)
  const command = commandOf(name)
  return (await machine.has(command)) ? machine.check(command) : null
}

/** Returns the version that meets most wishes: the one on PATH of several, else the newest. */
function best(available: readonly Toolchain[], wishes: readonly ToolNeed[]): Toolchain | null {
  const fitting = available.filter(({ version }) => wishes.every(({ fits }) => fits(version)))
  const [first] = fitting.filter(({ isDefault }) => isDefault)
  if (first) return first
  if (fitting.length > 0) return fitting.reduce((a, b) => (byVersion(a.version, b.version) < 0 ? b : a))
  const pin = wishes.find(({ isStrict, wanted }) => !isStrict && wanted !== null)?.wanted ?? null
  if (pin === null || available.length === 0) return available[0] ?? null
  return available.reduce((a, b) => (distance(b.version, pin) < distance(a.version, pin) ? b : a))
}

/** Returns how far a version is from a pin: the first number that differs counts most. Of two equally near, the newer is nearer. */
function distance(version: string, pin: string): number {
  const [a, b] = [numbersOf(version), numbersOf(pin)]
  return b.slice(0, 3).reduce((sum, wanted, index) => {
    const difference = (a[index] ?? 0) - wanted
    return sum + (Math.abs(difference) - (difference > 0 ? 0.5 : 0)) * 1000 ** (2 - index)
  }, 0)
}

function problemOf(
  name: string,
  wishes: readonly ToolNeed[],
  available: readonly Toolchain[],
  hasImage: boolean,
): string {
  const strict = wishes.find(({ isStrict }) => isStrict)
  if (available.length === 0 || strict === undefined) {
    const wish =
      wishes.find(({ wanted }) => wanted !== null) ?? wishes.find(({ wantedBy }) => wantedBy !== null)
    const asked = wish ? `${wish.wanted === null ? '' : ` ${wish.wanted}`} (${wish.wantedBy})` : ''
    return `This app needs ${titleOf(name)}${asked}, ${isMissing(name, hasImage, wish?.wanted ?? null)}`
  }
  const versions = available.map(({ version }) => version).join(', ')
  return `This app needs ${titleOf(name)} ${strict.wanted} (${strict.wantedBy}), and the server has ${versions}. ${hasImage ? imageRemedy(name, strict.wanted) : 'Install a version that fits, and restart berth.'}`
}

/** Reports whether a version meets one specifier: `>=3.9`, `~=3.10`, `==3.12.*`, `!=3.9.1`, `^3.10`, `~3.10` or `3.12`. */
function matchesSpecifier(version: string, specifier: string): boolean {
  const [, operator = '', stated = ''] = /^(===|[<>=!~]=|[<>^~])?\s*v?(\S*)$/.exec(specifier) ?? []
  if (stated === '' || stated === '*') return true
  const wanted = numbersOf(stated)
  const starts = startsWith(version, wanted)
  const compared = byVersion(version, wanted.join('.'))
  switch (operator) {
    case '>=':
      return compared >= 0
    case '>':
      return compared > 0 && !(starts && stated.endsWith('*'))
    case '<=':
      return compared <= 0 || starts
    case '<':
      return compared < 0
    case '!=':
      return stated.endsWith('*') ? !starts : compared !== 0
    case '~=':
      return compared >= 0 && startsWith(version, wanted.slice(0, -1))
    case '^':
      return compared >= 0 && startsWith(version, wanted.slice(0, 1))
    case '~':
      return compared >= 0 && startsWith(version, wanted.slice(0, 2))
    default:
      return starts
  }
}

/** Reports whether a version begins with these numbers. */
const startsWith = (version: string, numbers: readonly number[]): boolean =>
  `${version}.`.startsWith(numbers.map((number) => `${number}.`).join(''))

const numbersOf = (version: string): number[] =>
  (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? '').split('.').filter(Boolean).map(Number)

const threeNumbers = (version: string): string => [...numbersOf(version), 0, 0, 0].slice(0, 3).join('.')
