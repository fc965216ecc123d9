import { type Dirent, existsSync, lstatSync, readFileSync } from 'node:fs'
import { readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { GENERATED, SECRET_FILE } from '../../resources/files/manifest.ts'
import { isGone } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { TrackedFiles } from './git.ts'
import { IgnoreRules } from './gitignore.ts'

/** A file to send to a server. */
export interface SurveyedFile {
  /** Relative to the directory, separated by `/`. */
  readonly path: string
  /** In bytes. */
  readonly size: number
  readonly isExecutable: boolean
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
  /** When anything of it last changed, milliseconds since 1970. */
  readonly changedAt: number
}

/** A symbolic link to send to a server. Its target is in the directory. */
export interface SurveyedLink {
  readonly path: string
  /** As in the link, separated by `/`. */
  readonly target: string
}

/** Why an entry of a directory is not sent. */
type SkipReason =
  /** `.env` and similar files that git does not track, whose values may be secret. */
  | 'secret'
  /** Ignored by a `.gitignore` or `.berthignore` file, or other rules of git, and not tracked. */
  | 'ignored'
  /** Version control, installed packages and berth's own data, which can be generated again. */
  | 'generated'
  /** Installed packages that git tracks: they are those of another machine. */
  | 'installed'
  /** Submodules that git has not fetched. */
  | 'unfetched'
  /** Neither file, directory nor link: a socket, a pipe or a device. */
  | 'special'
  /** Its name is not UTF-8. */
  | 'unnameable'

/** The files of a directory to send to a server, and the entries to leave out. */
export interface DirectorySurvey {
  /** Absolute path of the directory. */
  readonly root: string
  readonly files: readonly SurveyedFile[]
  readonly links: readonly SurveyedLink[]
  /** Paths by reason. Those of directories end with `/`. */
  readonly leftOut: Readonly<Record<SkipReason, readonly string[]>>
  /** Paths of `.env` and similar files that are sent, since git tracks them. */
  readonly trackedSecrets: readonly string[]
  /** Paths of files that Git LFS has not fetched: pointers are sent. */
  readonly pointers: readonly string[]
  /** The number of tracked files that a sparse checkout leaves out. */
  readonly missing: number
  /** What kept git from listing its files, a sentence each. */
  readonly problems: readonly string[]
  /** Reports whether a file would be left out if it were in the directory. */
  readonly wouldLeaveOut: (path: string) => boolean
}

/** An app's sources have fewer files. More indicate a home directory or a disk named by mistake. @bound owner */
const MAX_FILES = 20_000

/**
 * Finds the files of a directory to send to a server. Empty directories are not sent.
 *
 * @param directory an absolute path
 * @throws CommandError if the directory cannot be read, has too many files, or has a link that leads out of it
 */
export async function surveyDirectory(directory: string): Promise<DirectorySurvey> {
  const root = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    throw directoryError(directory, error)
  })
  const tracked = new TrackedFiles(root)
  const surveyor = new Surveyor(root, tracked, await IgnoreRules.of(root, await tracked.add('')))
  await surveyor.enter(root)
  const { files, links, leftOut, trackedSecrets, pointers, wouldLeaveOut } = surveyor
  const missing = tracked.missing([...files, ...links].map(({ path }) => path))
  return {
    ...{ root, files, links, leftOut, trackedSecrets, pointers, missing, wouldLeaveOut },
    problems: tracked.problems,
  }
}

/** Reports whether a path was left out of a survey as ignored or generated; false before one. */
export function isLeftOut(survey: DirectorySurvey | null, path: string): boolean {
  const { ignored = [], generated = [], installed = [] } = survey?.leftOut ?? {}
  return [...ignored, ...generated, ...installed].some((entry) => entry === path || entry === `${path}/`)
}

/** Checks that there is a directory that can be read. @throws CommandError */
export async function checkReadableDirectory(directory: string): Promise<void> {
  await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    throw directoryError(directory, error)
  })
}

/** Returns a survey with these files and links only. */
export function partOf(survey: DirectorySurvey, paths: readonly string[]): DirectorySurvey {
  const wanted = new Set(paths)
  const isWanted = ({ path }: { path: string }): boolean => wanted.has(path)
  return { ...survey, files: survey.files.filter(isWanted), links: survey.links.filter(isWanted) }
}

class Surveyor {
  readonly files: SurveyedFile[] = []
  readonly links: SurveyedLink[] = []
  readonly leftOut: Record<SkipReason, string[]> = {
    secret: [],
    ignored: [],
    generated: [],
    installed: [],
    unfetched: [],
    special: [],
    unnameable: [],
  }
  readonly trackedSecrets: string[] = []
  readonly pointers: string[] = []

  constructor(
    private readonly root: string,
    private readonly tracked: TrackedFiles,
    private readonly rules: IgnoreRules,
  ) {}

  readonly wouldLeaveOut = (path: string): boolean =>
    !this.tracked.has(path) && (isSecret(path) || this.rules.ignores(join(this.root, path), false))

  async enter(directory: string): Promise<void> {
    const entries = await readdir(directory, { withFileTypes: true }).catch(
      (error: NodeJS.ErrnoException) => {
        throw directory !== this.root && isGone(error) ? error : directoryError(directory, error)
      },
    )
    const path = this.#path(directory)
    const names = new Set(entries.map(({ name }) => name))
    if (directory !== this.root) {
      if (isVirtualEnvironment(directory, names)) {
        this.leftOut[this.tracked.isAbove(path) ? 'installed' : 'generated'].push(`${path}/`)
        return
      }
      if (entries.length === 0 && this.tracked.isSubmodule(path)) this.leftOut.unfetched.push(`${path}/`)
    }
    const nested = directory !== this.root && names.has('.git') ? await this.tracked.add(path) : null
    await this.rules.enter(directory, nested)
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const full = join(directory, entry.name)
      const reason = this.#reasonAgainst(full, entry)
      if (reason) this.leftOut[reason].push(`${this.#path(full)}${entry.isDirectory() ? '/' : ''}`)
      else await this.#take(full, entry)
    }
  }

  /** Adds an entry. Ignores one that another program removes meanwhile. */
  async #take(full: string, entry: Dirent): Promise<void> {
    try {
      if (entry.isDirectory()) return await this.enter(full)
      if (entry.isSymbolicLink()) this.links.push(await this.#link(full))
      else this.files.push(this.#file(full))
      const path = this.#path(full)
      if (isSecret(path)) this.trackedSecrets.push(path)
    } catch (error) {
      if (!isGone(error)) throw error
      // Bytes that are not UTF-8 were replaced, so that the name leads nowhere.
      if (entry.name.includes('\ufffd')) this.leftOut.unnameable.push(this.#path(full))
    }
  }

  #reasonAgainst(full: string, entry: Dirent): SkipReason | undefined {
    const path = this.#path(full)
    const isDirectory = entry.isDirectory()
    const isTracked = isDirectory ? this.tracked.isAbove(path) : this.tracked.has(path)
    if (GENERATED.has(entry.name))
      return isTracked && entry.name === 'node_modules' ? 'installed' : 'generated'
    if (!isTracked && isSecret(path)) return 'secret'
    if (this.rules.ignores(full, isDirectory, isTracked)) return 'ignored'
    const isKnown = entry.isFile() || isDirectory || entry.isSymbolicLink()
    return isKnown ? undefined : 'special'
  }

  /** Describes a file. Its call is synchronous: a turn through the thread pool takes 20 times as long. */
  #file(full: string): SurveyedFile {
    if (this.files.length >= MAX_FILES) {
      throw new CommandError(
        `${this.root} has more than ${MAX_FILES} files. Is it the directory you mean? What does not belong to the app can be left out with a .berthignore file.`,
      )
    }
    const { size, mode, mtimeMs, ctimeMs } = lstatSync(full)
    const isExecutable = (mode & 0o100) !== 0
    const path = this.#path(full)
    if (isPointer(full, size)) this.pointers.push(path)
    return { path, size, isExecutable, modifiedAt: mtimeMs, changedAt: ctimeMs }
  }

  async #link(full: string): Promise<SurveyedLink> {
    const target = await readlink(full)
    // The final target counts too: another link on the way may lead out.
    const end = await realpath(full).catch(() => this.root)
    const leadsOut =
      isAbsolute(target) || !this.#contains(resolve(dirname(full), target)) || !this.#contains(end)
    if (leadsOut) {
      throw new CommandError(
        `${this.#path(full)} is a link that leads out of the directory (to ${target}), where the server cannot follow it. Replace it by what it leads to, or leave it out with a .berthignore file.`,
      )
    }
    return { path: this.#path(full), target: target.split(sep).join('/') }
  }

  #contains(path: string): boolean {
    return path === this.root || path.startsWith(this.root.endsWith(sep) ? this.root : this.root + sep)
  }

  #path(full: string): string {
    return relative(this.root, full).split(sep).join('/')
  }
}

/** Reports whether a path is of a `.env` or similar file, or in such a directory. */
const isSecret = (path: string): boolean => path.split('/').some((name) => SECRET_FILE.test(name))

/** Reports whether a directory has an installation of Python for one project. */
const isVirtualEnvironment = (directory: string, names: ReadonlySet<string>): boolean =>
  names.has('pyvenv.cfg') ||
  names.has('conda-meta') ||
  // Those that virtualenv made before its version 20.
  (names.has('bin') && names.has('lib') && existsSync(join(directory, 'bin/activate_this.py')))

/** Sizes of pointers that Git LFS writes, in bytes. */
const POINTER_SIZES = { least: 120, most: 200 }

/** Reports whether a file is a pointer of Git LFS, in place of a file that it has not fetched. */
const isPointer = (full: string, size: number): boolean =>
  size >= POINTER_SIZES.least &&
  size <= POINTER_SIZES.most &&
  contentOf(full).startsWith('version https://git-lfs.github.com/spec/')

/** Returns the content of a small file; an empty text if it cannot be read, which sending it reports. */
function contentOf(full: string): string {
  try {
    return readFileSync(full, 'latin1')
  } catch {
    return ''
  }
}

function directoryError(directory: string, error: NodeJS.ErrnoException): CommandError {
  const { code } = error
  if (code === 'ENOENT') return new CommandError(`There is no directory ${directory}.`)
  if (code === 'ENOTDIR') return new CommandError(`${directory} is not a directory.`)
  return unreadable(directory, error)
}
