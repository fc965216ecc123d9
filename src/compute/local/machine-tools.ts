import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { homeDirectory } from '../../runtime/home-directory.ts'
import { isDirectory, namesIn, realPathOrNull, textOrEmpty } from '../../runtime/if-present.ts'
import type { SystemPath } from './system-files.ts'
import { type RecognisedToolchain, recognise } from './toolchain-kinds.ts'
import { type FoundManager, findManagers } from './version-managers.ts'

/** What says where the tools of the machine are. */
export interface ToolPlaces {
  /** The PATH that berth was started with. */
  readonly path: string
  /** The variables that berth was started with: version managers are found by HOME and by their own. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Absolute path of berth's data directory, which servers must not see. */
  readonly dataDir: string
}

/** A toolchain that servers see. */
interface ShownToolchain extends RecognisedToolchain {
  /** How it was found: by the name of a version manager, or by `PATH`. */
  readonly source: string
}

/** The tools of a machine that its servers see. */
export interface ShownTools {
  /** The directories of the machine's PATH that commands keep. */
  readonly path: readonly string[]
  /**
   * Files and directories outside the system's own, each at its real path, and links that lead to them. None of them lies
   * in another.
   */
  readonly shown: readonly SystemPath[]
  /** The toolchains among them. */
  readonly toolchains: readonly ShownToolchain[]
  /** What PATH leads to and servers do not see, each with the reason in words for a person. */
  readonly leftOut: ReadonlyArray<{ readonly path: string; readonly why: string }>
}

/** Directories that every system has, so PATH always includes them. */
const STANDARD_PATH = ['/usr/local/bin', '/usr/bin', '/bin']

/** Directories of PATH with stand-ins of version managers, which do not work without their owner's home. */
const STAND_INS = /\/shims$/

/** The names of programs that belong to a toolchain. */
export const PROGRAMS =
  /^(?:(?:python|pypy)(?:\d(?:\.\d+)?)?|node(?:js)?|go|java|mvn|gradle|cargo|rustc|ruby(?:\d[\d.]*)?|php(?:\d[\d.]*)?|bun|deno)$/

/** Directories in which a server would see something else, or nothing. */
const NOT_OURS = /^\/(?:etc|proc|sys|dev|boot)(?:\/|$)/

/**
 * Selects the tools of the machine for servers: the directories of PATH, whole toolchains that it leads to, and all that
 * version managers have installed. Reads files only.
 *
 * @param sees `selected` for an isolation that shows as little as possible; `all` for one that shows the whole machine
 */
export function selectMachineTools(machine: ToolPlaces, sees: 'selected' | 'all' = 'selected'): ShownTools {
  return new ToolSelection(machine, sees).select()
}

/** Reports whether a real path belongs to the system's own directories, all of which servers see. */
export const isSystem = (path: string): boolean => /^\/(usr|bin|sbin|lib\w*)(\/|$)/.test(path)

/** Reports whether servers see a file of the machine, by its real path. */
export const isShown = (real: string, shown: ShownTools['shown']): boolean =>
  isSystem(real) || shown.some((one) => isBelow(real, one.real))

/** Collects the tools of one machine. */
class ToolSelection {
  readonly #sees: 'selected' | 'all'
  readonly #hidden: readonly string[]
  readonly #managers: readonly FoundManager[]
  readonly #given: readonly string[]
  readonly #path: string[] = []
  readonly #paths = new Set<string>()
  readonly #links = new Map<string, string>()
  readonly #toolchains = new Map<string, ShownToolchain>()
  readonly #leftOut: { path: string; why: string }[] = []

  constructor({ path, variables, dataDir }: ToolPlaces, sees: 'selected' | 'all') {
    const home = variables.HOME ?? homeDirectory()
    this.#sees = sees
    this.#hidden = [dataDir, ...homes(), ...(home === null ? [] : [home])].map(
      (place) => realPathOrNull(place) ?? place,
    )
    this.#given = [...new Set(path.split(':'))].filter((directory) => directory.startsWith('/'))
    this.#managers = findManagers({ home, variables, path: this.#given })
  }

  select(): ShownTools {
    for (const directory of this.#given) this.#addDirectory(directory)
    if (this.#sees === 'selected') for (const directory of STANDARD_PATH) this.#keep(directory)
    for (const manager of this.#managers) this.#addVersions(manager)
    const searched = new Set(this.#path.map((directory) => realPathOrNull(directory) ?? directory))
    if (this.#sees === 'selected') for (const directory of searched) this.#followLinks(directory)
    return {
      path: this.#path,
      shown: this.#reduced(),
      toolchains: [...this.#toolchains.values()],
      leftOut: this.#leftOut,
    }
  }

  #addDirectory(directory: string): void {
    const real = isDirectory(directory) ? realPathOrNull(directory) : null
    if (real === null) return
    const isOf = (paths: readonly string[]): boolean => paths.some((path) => realPathOrNull(path) === real)
    const shimsOf = this.#managers.find(({ shims }) => isOf(shims))
    const owner = this.#managers.find(({ own }) => isOf(own))
    if (shimsOf !== undefined) this.#addChosen(shimsOf, directory)
    else if (owner !== undefined) {
      this.#leaveOut(directory, `${owner.name} itself works only for its user`)
    } else if (STAND_INS.test(directory)) {
      this.#leaveOut(directory, 'stand-ins of a version manager work only with the home of their user')
    } else if (existsSync(join(real, 'rustup'))) this.#addProxies(directory, real)
    else this.#show(directory, real)
  }

  /** Puts the versions that a manager's user has chosen in the place of its stand-ins. */
  #addChosen({ name, chosen, choice }: FoundManager, directory: string): void {
    const bins = chosen.flatMap((version) => this.#binOf(version))
    for (const bin of bins) this.#keep(bin)
    if (bins.length > 0) return
    const wanted = choice === null ? 'no version is chosen for everywhere' : `${choice} is not installed`
    this.#leaveOut(directory, `${name}: ${wanted}, or a version that berth does not know`)
  }

  /** Puts the default toolchain before rustup's proxies, which want the home of their user. */
  #addProxies(directory: string, real: string): void {
    const rustup = this.#managers.find(({ name }) => name === 'rustup')
    for (const version of rustup?.chosen ?? []) for (const bin of this.#binOf(version)) this.#keep(bin)
    if ((rustup?.chosen.length ?? 0) === 0) {
      this.#leaveOut(directory, 'rustup has no default toolchain ("rustup default stable" sets one)')
    }
    if (isSystem(real) || this.#sees === 'all') {
      this.#show(directory, real)
      return
    }
    const proxy = identityOf(join(real, 'rustup'))
    const others = namesIn(real)
      .map((name) => join(real, name))
      .filter((path) => identityOf(path) !== proxy && realPathOrNull(path) === path)
    if (others.length === 0) return
    for (const path of others) this.#paths.add(path)
    if (directory !== real) this.#links.set(directory, real)
    this.#keep(directory)
  }

  #show(directory: string, real: string): void {
    if (this.#sees === 'all' || isSystem(real)) {
      if (real !== directory && !isSystem(directory)) this.#links.set(directory, real)
      this.#keep(directory)
      return
    }
    const parent = dirname(directory)
    const realParent = dirname(real)
    if (basename(real) === 'bin' && this.#showToolchain(realParent, 'PATH')) {
      if (realPathOrNull(parent) !== realParent) this.#links.set(directory, real)
      else if (parent !== realParent) this.#links.set(parent, realParent)
      this.#keep(directory)
      return
    }
    if (!this.#mayShow(real)) {
      this.#leaveOut(directory, 'it holds a home, or is a directory right below /')
      return
    }
    this.#keep(directory)
    this.#paths.add(real)
    if (directory !== real) this.#links.set(directory, real)
    const libraries = realPathOrNull(join(realParent, 'lib'))
    // A link may lead anywhere.
    if (libraries === null || !libraries.startsWith(`${realParent}/`) || !this.#mayShow(libraries)) return
    this.#paths.add(libraries)
    if (join(parent, 'lib') !== libraries) this.#links.set(join(parent, 'lib'), libraries)
  }

  /** Shows all that a manager has installed, and adds what its user has chosen to the end of PATH. */
  #addVersions({ name, root, versions, chosen }: FoundManager): void {
    for (const version of versions) {
      const real = realPathOrNull(version)
      if (real === null || this.#sees === 'all') continue
      // A link to elsewhere in a home would show what its user has not given to the manager.
      if (!real.startsWith(`${root}/`) && this.#isInHome(real)) continue
      if (!this.#showToolchain(real, name, true)) continue
      if (real !== version && !isSystem(real)) this.#links.set(version, real)
    }
    for (const version of chosen) for (const bin of this.#binOf(version)) this.#keep(bin)
  }

  /** Returns the directory with the programs of a version, as a list of one; empty if it is not recognised. */
  #binOf(version: string): string[] {
    const real = realPathOrNull(version)
    if (real === null || recognise(real, true) === null) return []
    return [join(version, 'bin')]
  }

  /** Shows whole toolchains that programs of PATH are links into, such as /usr/local/bin/node. */
  #followLinks(directory: string): void {
    for (const name of namesIn(directory)) {
      if (!PROGRAMS.test(name)) continue
      const program = realPathOrNull(join(directory, name))
      if (program === null || isSystem(program) || NOT_OURS.test(program)) continue
      if ([...this.#paths].some((shown) => isBelow(program, shown))) continue
      if (this.#showToolchain(dirname(dirname(program)), 'PATH')) continue
      this.#leaveOut(
        join(directory, name),
        `it leads to ${program}, which is in no toolchain that berth knows`,
      )
    }
  }

  /** Shows a directory if it is a toolchain, and reports whether servers see it. */
  #showToolchain(prefix: string, source: string, managed = false): boolean {
    if (this.#toolchains.has(prefix)) return true
    if (!isSystem(prefix) && !this.#mayShow(prefix)) return false
    const toolchain = recognise(prefix, managed)
    if (toolchain === null) return false
    this.#toolchains.set(prefix, { ...toolchain, source })
    if (isSystem(prefix)) return true
    for (const part of toolchain.parts()) if (this.#mayShow(part)) this.#paths.add(part)
    return true
  }

  #keep(directory: string): void {
    if (!this.#path.includes(directory)) this.#path.push(directory)
  }

  #leaveOut(path: string, why: string): void {
    this.#leftOut.push({ path, why })
  }

  /** Reports whether a directory is at least two levels deep and contains none of the hidden paths. */
  #mayShow(path: string): boolean {
    if (path.split('/').length < 3 || NOT_OURS.test(path)) return false
    return this.#hidden.every((other) => !isBelow(other, path))
  }

  #isInHome(path: string): boolean {
    return this.#hidden.some((home) => isBelow(path, home))
  }

  /** Returns what is shown, without what lies in something else that is shown. */
  #reduced(): SystemPath[] {
    const paths = [...this.#paths].sort()
    const isCovered = (path: string, others: Iterable<string>): boolean => {
      for (const other of others) if (other !== path && isBelow(path, other)) return true
      return false
    }
    const links = [...this.#links].filter(
      ([path]) =>
        !this.#paths.has(path) &&
        !isCovered(path, this.#paths) &&
        !isCovered(path, this.#links.keys()) &&
        !isSystem(path) &&
        !NOT_OURS.test(path),
    )
    return [
      ...paths.filter((path) => !isCovered(path, this.#paths)).map((path) => ({ path, real: path })),
      ...links.map(([path, real]) => ({ path, real })),
    ]
  }
}

/** Reports whether a path is a directory or lies in it. */
const isBelow = (path: string, directory: string): boolean => `${path}/`.startsWith(`${directory}/`)

/** Returns the file that a path leads to, as a text: hard links are the same one. */
function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}:${ino}`
  } catch {
    return ''
  }
}

/** Returns the homes of this machine's users, and where homes are. The system's own users have none. */
function homes(): string[] {
  const listed = textOrEmpty('/etc/passwd')
    .split('\n')
    .map((line) => line.split(':')[5] ?? '')
    .filter((home) => home.split('/').length > 2 && !isSystem(home) && !NOT_OURS.test(home))
  return [...listed, '/root', '/home']
}
