import type { Dirent } from 'node:fs'
import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { isGone } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'
import { IgnoreRules } from './gitignore.ts'

/** A file that goes to a server. */
export interface LocalFile {
  /** Relative to the directory, with `/` between names. */
  readonly path: string
  /** Bytes. */
  readonly size: number
  readonly isExecutable: boolean
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
}

/** A symbolic link that goes to a server; it leads to something in the directory. */
export interface LocalLink {
  readonly path: string
  /** As the link says it, with `/` between names. */
  readonly target: string
}

/** Why something of a directory stays behind. */
export type SkipReason =
  /** `.env` and its kind: the values may be secret. */
  | 'secret'
  /** A `.gitignore` file says so. */
  | 'ignored'
  /** Version control, installed packages and berth's own data, which are made anew where they are wanted. */
  | 'generated'
  /** Neither file, directory nor link: a socket, a pipe, a device. */
  | 'special'

/** What of a directory goes to a server, and what stays behind. */
export interface DirectorySurvey {
  /** The directory's absolute path. */
  readonly root: string
  readonly files: readonly LocalFile[]
  readonly links: readonly LocalLink[]
  /** Paths by reason; those of directories end with `/`. */
  readonly leftOut: Readonly<Record<SkipReason, readonly string[]>>
}

/** More files are no app's sources, but a home directory or a disk that was named by mistake. */
const MAX_FILES = 20_000

const GENERATED: ReadonlySet<string> = new Set(['.git', '.berth', 'node_modules'])

/** `.env`, `.env.production`, `.envrc`, but not the examples, which have names only. */
const SECRET = /^\.env(?!.*\.(?:example|sample|template|dist|defaults)$)/

/**
 * Finds out what of a directory goes to a server. Empty directories do not go.
 *
 * @param directory an absolute path
 * @throws CommandError where the directory cannot be read, has far too many files, or has a link that leads out
 */
export async function surveyDirectory(directory: string): Promise<DirectorySurvey> {
  const root = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(directory, error)
  })
  const surveyor = new Surveyor(root, await IgnoreRules.of(root))
  await surveyor.enter(root)
  return surveyor
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
        throw directory !== this.root && isGone(error) ? error : unreadable(directory, error)
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

  /** What another program removes meanwhile is passed over. */
  async #take(full: string, entry: Dirent): Promise<void> {
    try {
      if (entry.isDirectory()) await this.enter(full)
      else if (entry.isSymbolicLink()) this.links.push(await this.#link(full))
      else this.files.push(await this.#file(full))
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

  async #file(full: string): Promise<LocalFile> {
    if (this.files.length >= MAX_FILES) {
      throw new CommandError(
        `${this.root} has more than ${MAX_FILES} files. Is it the directory you mean? What does not belong to the app can be left out with a .gitignore file.`,
      )
    }
    const { size, mode, mtimeMs } = await lstat(full)
    return { path: this.#path(full), size, isExecutable: (mode & 0o100) !== 0, modifiedAt: mtimeMs }
  }

  async #link(full: string): Promise<LocalLink> {
    const target = await readlink(full)
    // Where it ends in the end, too: a link on the way may lead out.
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

function unreadable(directory: string, { code, message }: NodeJS.ErrnoException): CommandError {
  if (code === 'ENOENT') return new CommandError(`There is no directory ${directory}.`)
  if (code === 'ENOTDIR') return new CommandError(`${directory} is no directory.`)
  return new CommandError(`${directory} cannot be read: ${message}.`)
}
