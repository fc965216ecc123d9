import { lookup } from 'mrmime'
import type { Workspace, WorkspaceFile } from '../../compute/workspace.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { machineNow } from '../../runtime/clock.ts'
import type { Validators } from './conditions.ts'
import { withReload } from './reload.ts'

/** The content of a site's file, with its validators. */
export interface Content extends Validators {
  /** In bytes. */
  readonly size: number
  /** Its response headers, for complete and empty responses. */
  readonly headers: Readonly<Record<string, string>>
  /** Returns its bytes from `start` to `end`. Call either this or `dispose`, once. */
  body(start: number, end: number): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  dispose(): void
}

/** Size up to which files are kept in memory, in bytes. @bound system */
const CACHED_FILE_LIMIT = 256 * 1024

/** Size up to which a page is read whole to insert the reload script, in bytes. Larger pages get none. @bound system */
const RELOAD_LIMIT = 8 * 1024 * 1024

/**
 * Milliseconds after a change in which another one may leave the file's times unchanged. Until then the file is not
 * cached.
 */
const STABLE_MS = 100

/** The files of a directory in a workspace. Small ones are cached until they change. */
export class Contents {
  readonly #cache = new ContentCache<CachedContent>()

  /**
   * @param prefix base of all paths: empty, or ending in `/`
   * @param reloading whether pages get the reload script
   */
  constructor(
    private readonly workspace: Workspace,
    private readonly prefix: string,
    private readonly reloading: boolean,
  ) {}

  /** Returns the content at a path; null if there is no file, or the workspace refuses it. */
  async find(path: string): Promise<Content | null> {
    const full = this.prefix + path
    const kept = this.#cache.get(path)
    if (kept !== null && (await this.workspace.unchanged(full, kept.identity))) return kept
    const file = await quietly(() => this.workspace.open(full))
    return file === null ? null : this.#contentOf(file, path)
  }

  async #contentOf(file: WorkspaceFile, path: string): Promise<Content> {
    const type = contentType(path)
    const reloads = this.reloading && type.startsWith('text/html') && file.size <= RELOAD_LIMIT
    if (file.size > CACHED_FILE_LIMIT && !reloads) return new StreamedContent(file, type)
    using open = file
    const bytes = await open.read(0, open.size)
    if (bytes.length !== open.size) throw new Error(`${path} became shorter while it was read`)
    const content = new CachedContent(open, type, reloads ? withReload(bytes) : bytes, reloads)
    if (content.size <= CACHED_FILE_LIMIT && machineNow() - open.changedAt > STABLE_MS)
      this.#cache.set(path, content)
    return content
  }
}

/** A file in memory, or a page with the reload script. */
class CachedContent implements Content {
  readonly identity: string
  readonly etag: string
  readonly modified: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    file: WorkspaceFile,
    type: string,
    readonly bytes: Uint8Array<ArrayBuffer>,
    made: boolean,
  ) {
    this.identity = file.identity
    this.etag = etagOf(file, made ? '-reload' : '')
    this.modified = secondsOf(file)
    this.headers = headersOf(this, type)
  }

  get size(): number {
    return this.bytes.length
  }

  body(start: number, end: number): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(start, end)
  }

  dispose(): void {}
}

/** An open file. */
class StreamedContent implements Content {
  readonly size: number
  readonly etag: string
  readonly modified: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    private readonly file: WorkspaceFile,
    type: string,
  ) {
    this.size = file.size
    this.etag = etagOf(file, '')
    this.modified = secondsOf(file)
    this.headers = headersOf(this, type)
  }

  body(start: number, end: number): ReadableStream<Uint8Array> {
    return fileStream(this.file, start, end)
  }

  dispose(): void {
    this.file[Symbol.dispose]()
  }
}

/** Returns null if the workspace refuses: for callers the file does not exist. */
export async function quietly<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}

const etagOf = ({ identity }: WorkspaceFile, variant: string): string =>
  `"${Bun.hash(identity).toString(36)}${variant}"`

const secondsOf = ({ modifiedAt }: WorkspaceFile): number => Math.floor(modifiedAt / 1_000)

const headersOf = ({ etag, modified }: Validators, type: string): Record<string, string> => ({
  'content-type': type,
  'cache-control': 'no-cache',
  etag,
  'last-modified': new Date(modified * 1_000).toUTCString(),
  'accept-ranges': 'bytes',
})

/** Matches types besides `text/…` whose content is text. */
const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|manifest\+json|ld\+json|javascript|xhtml\+xml|rss\+xml|atom\+xml)|image\/svg\+xml)/

/** Returns the Content-Type of a file by its name. Text counts as UTF-8. */
function contentType(path: string): string {
  const type = lookup(path) ?? 'application/octet-stream'
  return TEXTUAL.test(type) ? `${type}; charset=utf-8` : type
}

/** Size of a read, in bytes: the most that is buffered for one client. */
const PART = 256 * 1024

/**
 * Returns a file's bytes from `start` to `end` as a stream, which reads them on demand and disposes of the file at
 * its end.
 */
function fileStream(file: WorkspaceFile, start: number, end: number): ReadableStream<Uint8Array> {
  let at = start
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const bytes = await file.read(at, Math.min(PART, end - at))
          at += bytes.length
          if (bytes.length > 0) controller.enqueue(bytes)
          // The file was truncated and cannot fill its Content-Length: the client has to see a failure.
          if (bytes.length === 0) throw new Error('the file became shorter while it was read')
          if (at < end) return
          file[Symbol.dispose]()
          controller.close()
        } catch (error) {
          file[Symbol.dispose]()
          throw error
        }
      },
      cancel: () => file[Symbol.dispose](),
    },
    { highWaterMark: 0 },
  )
}

/** Limit of a site's cache, in bytes. */
const LIMIT = 8 * 1024 * 1024

/** Caches the contents of small files by path. The caller checks that a file has not changed since. */
class ContentCache<Content extends { readonly size: number }> {
  readonly #kept = new Map<string, Content>()
  #size = 0

  get(path: string): Content | null {
    return this.#kept.get(path) ?? null
  }

  /** Adds a content, and removes the oldest ones if the limit is exceeded. */
  set(path: string, content: Content): void {
    this.#drop(path)
    this.#kept.set(path, content)
    this.#size += content.size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= LIMIT) break
      this.#drop(oldest)
    }
  }

  #drop(path: string): void {
    this.#size -= this.#kept.get(path)?.size ?? 0
    this.#kept.delete(path)
  }
}
