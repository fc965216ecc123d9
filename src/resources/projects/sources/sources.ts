import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import { BerthError, badRequest } from '../../../errors.ts'
import { ifPresent } from '../../../runtime/if-present.ts'
import { NameResolver } from '../../../runtime/name-resolver.ts'
import { interfaceAddressesReader } from '../../../system/interface-addresses.ts'
import type { TemplateFile } from '../../templates/files.ts'
import type { ProcessEnvironment, ResolveHost } from './environment.ts'
import { quoted, SourceError } from './errors.ts'
import type { HostRules } from './hosts.ts'
import { SOURCE_LIMITS, type SourceLimits } from './limits.ts'
import type { FetchedSource, ProjectSource } from './model.ts'
import { listTree } from './tree.ts'

/** The options of `Sources`. */
export interface SourcesOptions {
  /** Directories of this machine that repositories may be taken from; absolute. */
  sourceFolders: readonly string[]
  /** Whether code may also come from loopback and private networks, and archives there over http. */
  allowLocal: boolean
  /** The variables that berth was started with. */
  environment: ProcessEnvironment
  limits?: Partial<SourceLimits>
  /** Resolves host names; by default as this machine does. */
  resolve?: ResolveHost
  /** Certificates of authorities that archive servers may use, as PEM, instead of the system's. */
  ca?: string
}

/** Where code goes, and its limit. */
export interface Destination {
  workspace: Workspace
  /** The project's directory in the workspace; its contents are replaced. */
  path: string
  /** Bytes left in the server's storage, which may be below the limit. */
  room?: number
  /** A directory that the code has to have, relative to it; empty for none. */
  directory?: string
  /** Ends it; nothing is changed then. */
  signal: AbortSignal
}

/**
 * Brings a project's code into a workspace: from a git repository, an archive or given files. Prepares and checks
 * everything in a staging directory and moves it by one rename, so no incomplete code is visible and an interrupted
 * call can be repeated.
 */
export class Sources {
  readonly #options: SourcesOptions
  readonly #limits: SourceLimits
  readonly #hosts: HostRules

  constructor(options: SourcesOptions) {
    this.#options = options
    this.#limits = { ...SOURCE_LIMITS, ...options.limits }
    const names = new NameResolver()
    const { allowLocal, resolve = (name) => names.lookUp(name, { search: true }) } = options
    this.#hosts = { allowLocal, resolve, ownAddresses: interfaceAddressesReader() }
  }

  /**
   * Refuses a source with a url, reference or directory that is not allowed, or without exactly one archive. Fetches
   * nothing.
   *
   * @param upload the file that was uploaded with the request
   * @returns the bytes of an archive in the request, for `unpack`; else null
   * @throws BerthError 400 that names the field
   */
  async check(source: ProjectSource, upload: Uint8Array | null): Promise<Uint8Array | null> {
    const { checkPlainUrl, checkSource } = await import('./check.ts')
    checkSource(source, upload !== null, { ...this.#hosts, ...this.#options })
    if (source.type === 'archive' && source.url !== undefined) await checkPlainUrl(source.url, this.#hosts)
    return source.type === 'archive' && source.data !== undefined
      ? Buffer.from(source.data, 'base64')
      : upload
  }

  /**
   * Unpacks an archive from a request.
   *
   * @returns the paths of its files and links
   * @throws BerthError 400 without changes for one that is damaged, dangerous or over a limit
   */
  async unpack(archive: Uint8Array, destination: Destination): Promise<string[]> {
    return await refusing('The archive is refused. ', () => this.#place(destination, unpacked(archive)))
  }

  /**
   * Fetches a repository or an archive, and replaces the contents of the project's path. Can be repeated after an
   * interruption, with the same result.
   *
   * @param log receives progress, line by line and without credentials
   * @returns the paths of its files and links
   * @throws SourceError with a sentence for the project's creator; the signal's reason
   */
  async fetch(
    source: FetchedSource,
    destination: Destination & { log: (text: string) => void },
  ): Promise<string[]> {
    try {
      return await this.#place(destination, this.#fetched(source, destination.log))
    } catch (error) {
      if (error instanceof BerthError || error instanceof WorkspaceError) {
        throw new SourceError(error.message, { cause: error })
      }
      throw error
    }
  }

  /**
   * Writes files to a project's path: those of a template, or none for an empty directory.
   *
   * @returns the paths of the files
   * @throws SourceError for a path that a project cannot have
   */
  async writeFiles(
    files: Iterable<TemplateFile> | AsyncIterable<TemplateFile>,
    destination: Destination,
  ): Promise<string[]> {
    return await this.#place(destination, written(files))
  }

  /**
   * Calls `look` with the directory of code that is nowhere else, and is gone when this resolves.
   *
   * @param code to fetch, an archive in the request, or the files of a template
   * @throws BerthError 400 for code that is refused or cannot be fetched; what `look` throws
   */
  async inspect<T>(
    code: FetchedSource | Uint8Array | AsyncIterable<TemplateFile> | Iterable<TemplateFile>,
    place: Omit<Destination, 'path'>,
    look: (directory: string) => Promise<T>,
  ): Promise<T> {
    if (code instanceof Uint8Array)
      return await refusing('The archive is refused. ', () => this.#stage(place, unpacked(code), look))
    const prepare = 'type' in code ? this.#fetched(code, () => {}) : written(code)
    return await refusing('', () => this.#stage(place, prepare, look))
  }

  /** Returns what fetches a source into a staging directory. */
  #fetched(source: FetchedSource, log: (text: string) => void): Prepare {
    return async (staging, limits, signal) => {
      if (source.type === 'git') {
        const { fetchRepository } = await import('./git/fetch.ts')
        return await fetchRepository({ source, staging, limits, log, signal }, this.#gitDependencies)
      }
      const file = join(staging, 'archive')
      const { download, readAuthorityFile } = await import('./download.ts')
      const ca = this.#options.ca ?? (await readAuthorityFile(this.#options.environment))
      log('Fetching the archive.')
      await download(source.url, file, { hosts: this.#hosts, limits, ca, signal })
      const { unpackArchive } = await import('./archive/unpack.ts')
      log(`Unpacking ${Bun.file(file).size} bytes.`)
      return await unpackArchive(file, staging, limits, signal)
    }
  }

  get #gitDependencies() {
    const { sourceFolders, environment } = this.#options
    return { hosts: this.#hosts, sourceFolders, environment }
  }

  /** Prepares code and moves it to its place. @returns the paths of its files and links */
  #place(destination: Destination, prepare: Prepare): Promise<string[]> {
    return this.#stage(destination, prepare, async (code, paths) => {
      await destination.workspace.moveIn(code, destination.path)
      return paths
    })
  }

  /** Prepares code in a staging directory, within the limits and the time, and calls `use` with it and its paths. */
  async #stage<T>(
    { workspace, room = Number.POSITIVE_INFINITY, directory = '', signal }: Omit<Destination, 'path'>,
    prepare: Prepare,
    use: (code: string, paths: string[]) => Promise<T>,
  ): Promise<T> {
    const limits = { ...this.#limits, bytes: Math.max(0, Math.min(this.#limits.bytes, room)) }
    using time = new Timeout(limits.timeoutMs)
    const ending = AbortSignal.any([signal, time.signal])
    ending.throwIfAborted()
    await using staging = await workspace.staging()
    const code = await prepare(staging.path, limits, ending)
    ending.throwIfAborted()
    const paths = await listTree(code)
    // None of its links leads out.
    if (!ifPresent(() => statSync(join(code, directory)))?.isDirectory()) throw noDirectory(directory, code)
    return await use(code, paths)
  }
}

/** Puts code into a staging directory, and returns the code's own directory there. */
type Prepare = (staging: string, limits: SourceLimits, signal: AbortSignal) => Promise<string>

/** Returns what unpacks an archive from a request. */
const unpacked =
  (archive: Uint8Array): Prepare =>
  async (staging, limits, signal) => {
    const file = join(staging, 'archive')
    await Bun.write(file, archive)
    const { unpackArchive } = await import('./archive/unpack.ts')
    return await unpackArchive(file, staging, limits, signal)
  }

/** Returns what writes files. */
const written =
  (files: Iterable<TemplateFile> | AsyncIterable<TemplateFile>): Prepare =>
  async (staging, limits) => {
    const { writeFiles } = await import('./archive/writer.ts')
    return await writeFiles(files, staging, limits)
  }

/** Makes a refusal of code the refusal of its request. */
async function refusing<T>(introduction: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SourceError) throw badRequest(`${introduction}${error.message}`)
    if (error instanceof WorkspaceError && error.fault !== 'disk_full') throw badRequest(error.message)
    throw error
  }
}

/** Most directories that are named where one is missing. @bound reader */
const MAX_NAMED = 8

function noDirectory(directory: string, code: string): SourceError {
  const names = readdirSync(code, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== '.git')
    .map(({ name }) => name)
    .sort()
  const rest = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  const there = names.length === 0 ? 'no directory' : `${names.slice(0, MAX_NAMED).join(', ')}${rest}`
  return new SourceError(`It has no directory ${quoted(directory)}. At its top it has ${there}.`)
}

/** Aborts after a period of real time. Unlike `AbortSignal.timeout`, its timer can be cleared. */
class Timeout implements Disposable {
  readonly #controller = new AbortController()
  readonly #timer: ReturnType<typeof setTimeout>

  constructor(ms: number) {
    const reason = new SourceError(
      `The code was not there within ${Math.round(ms / 1000)} s, which is the limit.`,
    )
    this.#timer = setTimeout(() => this.#controller.abort(reason), ms)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}
