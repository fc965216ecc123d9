import { type Dirent, lstatSync } from 'node:fs'
import { readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { GENERATED, SECRET } from '../../resources/files/manifest.ts'
import { isGone } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { IgnoreRules } from './gitignore.ts'

/** A file to send to a server. */
export interface LocalFile {
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
export interface LocalLink {
  readonly path: string
  /** As in the link, separated by `/`. */
  readonly target: string
}

/** Why an entry of a directory is not sent. */
type SkipReason =
  /** `.env` and similar files, whose values may be secret. */
  | 'secret'
  /** Ignored by a `.gitignore` or `.berthignore` file. */
  | 'ignored'
  /** Version control, installed packages and berth's own data, which can be generated again. */
  | 'generated'
  /** Neither file, directory nor link: a socket, a pipe or a device. */
  | 'special'

/** The files of a directory to send to a server, and the entries to leave out. */
export interface DirectorySurvey {
  /** Absolute path of the directory. */
  readonly root: string
  readonly files: readonly LocalFile[]
  readonly links: readonly LocalLink[]
  /** Paths by reason. Those of directories end with `/`. */
  readonly leftOut: Readonly<Record<SkipReason, readonly string[]>>
}

/** An app's sources have fewer files. More indicate a home directory or a disk named by mistake. */
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
  const surveyor = new Surveyor(root, await IgnoreRules.of(root))
  await surveyor.enter(root)
  return surveyor
}

/** Checks that there is a directory that can be read. @throws CommandError */
export async function checkDirectory(directory: string): Promise<void> {
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

class Surveyor implements DirectorySurvey {
  readonly files: LocalFile[] = []
  readonly links: LocalLink[] = []
  readonly leftOut = {
    secret: [] as string[],
    ignored: [] as string[],
    generated: [] as string[],
    special: [] as string[],
  }

  constructor(
    readonly root: string,
    private readonly rules: IgnoreRules,
  ) {}

  async enter(directory: string): Promise<void> {
    const entries = await readdir(directory, { withFileTypes: true }).catch(
      (error: NodeJS.ErrnoException) => {
        throw directory !== this.root && isGone(error) ? error : directoryError(directory, error)
      },
    )
    if (directory !== this.root && entries.some(({ name }) => name === 'pyvenv.cfg')) {
      this.leftOut.generated.push(`${this.#path(directory)}/`)
      return
    }
    await this.rules.enter(directory)
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
      if (entry.isDirectory()) await this.enter(full)
      else if (entry.isSymbolicLink()) this.links.push(await this.#link(full))
      else this.files.push(this.#file(full))
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }

  #reasonAgainst(full: string, entry: Dirent): SkipReason | undefined {
    if (GENERATED.has(entry.name)) return 'generated'
    if (SECRET.test(entry.name)) return 'secret'
    if (this.rules.ignores(full, entry.isDirectory())) return 'ignored'
    const isKnown = entry.isFile() || entry.isDirectory() || entry.isSymbolicLink()
    return isKnown ? undefined : 'special'
  }

  /** Describes a file. Its call is synchronous: a turn through the thread pool takes 20 times as long. */
  #file(full: string): LocalFile {
    if (this.files.length >= MAX_FILES) {
      throw new CommandError(
        `${this.root} has more than ${MAX_FILES} files. Is it the directory you mean? What does not belong to the app can be left out with a .gitignore or .berthignore file.`,
      )
    }
    const { size, mode, mtimeMs, ctimeMs } = lstatSync(full)
    const isExecutable = (mode & 0o100) !== 0
    return { path: this.#path(full), size, isExecutable, modifiedAt: mtimeMs, changedAt: ctimeMs }
  }

  async #link(full: string): Promise<LocalLink> {
    const target = await readlink(full)
    // The final target counts too: another link on the way may lead out.
    const end = await realpath(full).catch(() => this.root)
    const leadsOut =
      isAbsolute(target) || !this.#contains(resolve(dirname(full), target)) || !this.#contains(end)
    if (leadsOut) {
      throw new CommandError(
        `${this.#path(full)} is a link that leads out of the directory (to ${target}), where the server cannot follow it. Replace it by what it leads to, or leave it out with a .gitignore file.`,
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

function directoryError(directory: string, error: NodeJS.ErrnoException): CommandError {
  const { code } = error
  if (code === 'ENOENT') return new CommandError(`There is no directory ${directory}.`)
  if (code === 'ENOTDIR') return new CommandError(`${directory} is no directory.`)
  return unreadable(directory, error)
}
