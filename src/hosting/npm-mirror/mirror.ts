import type { Logger } from '../../runtime/logger.ts'
import { Budget, type Release } from './budget.ts'
import { DiskCache } from './disk.ts'
import { DistIndex } from './dist-index.ts'
import { rewriteTarballUrls, tarballUrlFor } from './document.ts'
import { ABBREVIATED, Documents, type Form } from './documents.ts'
import { NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'
import { type DocumentRequest, parsePath, type RegistryRequest } from './registry-request.ts'
import { PART_BYTES, Tarballs } from './tarballs.ts'

/** Bytes of a response from which it is sent in pieces of this size, as the client reads. */
const PIECE_BYTES = 64 * 1024

/** Most bytes of responses under way to a server. Package managers read what they asked for, so none of them waits. */
const UNDER_WAY_BYTES = 64 * 2 ** 20

/** Characters from which a document takes long enough to be rewritten or parsed that everything else gets a turn before. */
const LARGE_DOCUMENT = 2 ** 20

/** Options of a mirror. */
interface MirrorOptions {
  /** Absolute path of the cache's directory. */
  directory: string
  /** URL of the mirrored registry, without a trailing slash. */
  registry: string
  /** Limit of the cache on disk, in bytes. */
  maxBytes: number
  logger: Logger
  /** Milliseconds since 1970. */
  now: () => number
  /** Returns the server that a credential belongs to; null for none. */
  authenticate: (token: string) => string | null
  /** Called with the server and the reason when a request fails. */
  onProblem: (serverId: string, message: string) => void
  /** Its address, without a trailing slash. */
  origin: string
}

/**
 * A read-only mirror of an npm registry. It fetches packages on request and caches them. Servers reach
 * the cache only through it, so none of them can change the packages of another.
 */
export class NpmMirror {
  readonly #options: MirrorOptions
  readonly #stopping = new AbortController()
  readonly #disk: DiskCache
  readonly #documents: Documents
  readonly #tarballs: Tarballs
  readonly #underWay = new Budget(UNDER_WAY_BYTES)
  /** The large documents that are made a response of, one at a time for each server. */
  readonly #inWork = new Budget(1)

  constructor(options: MirrorOptions) {
    const { directory, maxBytes, now } = options
    this.#options = options
    this.#disk = new DiskCache(directory, maxBytes, now)
    const upstream = new NpmRegistry({ ...options, stopping: this.#stopping.signal })
    const index = new DistIndex(this.#disk, upstream)
    const components = { ...options, disk: this.#disk, upstream, index }
    this.#documents = new Documents(components)
    this.#tarballs = new Tarballs(components)
  }

  /** Opens the cache. @throws the system's error if it cannot */
  async open(): Promise<void> {
    await this.#disk.open()
  }

  /** Cancels requests under way. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#tarballs.drain()
    await this.#documents.drain()
    await this.#disk.drain()
  }

  /** Responds to a package manager. */
  async respond(request: Request): Promise<Response> {
    const token = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    const serverId = token === undefined ? null : this.#options.authenticate(token)
    if (serverId === null) {
      const error =
        'This registry mirror needs the credential that berth gives to the commands of its servers.'
      return Response.json({ error }, { status: 401, headers: { 'www-authenticate': 'Bearer' } })
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const error = `This registry mirror is read-only: there is no ${request.method} (publishing, searching, audits, accounts).`
      return Response.json({ error }, { status: 405, headers: { allow: 'GET, HEAD' } })
    }
    const parsed = parsePath(new URL(request.url).pathname)
    if (parsed === null) {
      const error = 'This registry mirror gives packages, versions, tags and tarballs, nothing else.'
      return Response.json({ error }, { status: 404 })
    }
    try {
      return await this.#serve(serverId, parsed, request)
    } catch (error) {
      return this.#refusalResponse(serverId, parsed, error)
    }
  }

  async #serve(serverId: string, parsed: RegistryRequest, request: Request): Promise<Response> {
    if (parsed.kind === 'ping') return Response.json({})
    if (parsed.kind === 'tarball') return this.#serveTarball(serverId, parsed.name, parsed.file, request)
    const form = formOf(parsed, request)
    const document = await this.#documents.get(parsed.name, form)
    const release = this.#underWay.tryAcquire(serverId, document.length)
    if (release === null) return this.#serveLater(serverId, parsed, request, document.length)
    return await this.#sendPart(serverId, document, parsed, request, release)
  }

  /** Waits until the server has read earlier responses, and has nothing in memory meanwhile. */
  async #serveLater(
    serverId: string,
    parsed: DocumentRequest,
    request: Request,
    size: number,
  ): Promise<Response> {
    const release = await this.#underWay.acquire(serverId, size)
    try {
      request.signal.throwIfAborted()
      const document = await this.#documents.get(parsed.name, formOf(parsed, request))
      return await this.#sendPart(serverId, document, parsed, request, release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Returns a response with a document or a part of it, in the client's form. */
  async #sendPart(
    serverId: string,
    document: string,
    parsed: DocumentRequest,
    request: Request,
    release: Release,
  ): Promise<Response> {
    const done = document.length < LARGE_DOCUMENT ? null : await this.#inWork.acquire(serverId, 1)
    try {
      if (done !== null) await new Promise<void>((resolve) => setImmediate(resolve))
      const part = parsed.kind === 'packument' ? document : partOf(document, parsed)
      const text = rewriteTarballUrls(
        part,
        tarballUrlFor(request.headers.get('user-agent'), this.#options.origin),
      )
      const type = formOf(parsed, request) === 'abbreviated' ? ABBREVIATED : 'application/json'
      return conditional(request, text, type, release)
    } catch (error) {
      release()
      throw error
    } finally {
      done?.()
    }
  }

  async #serveTarball(serverId: string, name: string, file: string, request: Request): Promise<Response> {
    const release = await this.#underWay.acquire(serverId, PART_BYTES)
    try {
      request.signal.throwIfAborted()
      const { size, body } = await this.#tarballs.get(name, file)
      const headers = {
        'content-type': 'application/octet-stream',
        'content-length': String(size),
        'cache-control': 'private, max-age=31536000, immutable',
      }
      if (request.method === 'GET') return new Response(bodyOf(body, release), { headers })
      if (body instanceof ReadableStream) await body.cancel()
      release()
      return new Response(null, { headers })
    } catch (error) {
      release()
      throw error
    }
  }

  #refusalResponse(serverId: string, parsed: RegistryRequest, error: unknown): Response {
    const problem = error instanceof PackageError ? error : null
    const message = problem?.message ?? 'The package cache failed; see the log of berth.'
    if (problem === null) this.#options.logger.error('the package cache failed', { asked: parsed, error })
    this.#options.onProblem(serverId, message)
    return Response.json({ error: message }, { status: problem?.status ?? 424 })
  }
}

/** Returns a tarball's bytes, piece by piece unless they are few. @param release called when they are sent */
function bodyOf(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>,
  release: Release,
): ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> {
  if (body instanceof ReadableStream) return thenRelease(body, release)
  if (body.length >= PIECE_BYTES) return piecesOf(body, release)
  release()
  return body
}

/** Sends bytes piece by piece, each when the client has read the one before. */
function piecesOf(bytes: Uint8Array<ArrayBuffer>, release: Release): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.slice(at, at + PIECE_BYTES))
        at += PIECE_BYTES
        if (at < bytes.length) return
        controller.close()
        release()
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}

/** Returns the same stream, which gives something back at its end. */
function thenRelease(stream: ReadableStream<Uint8Array>, release: Release): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
        release()
      },
      async cancel() {
        release()
        await reader.cancel()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Returns the form of a document that a client asks for. */
function formOf(parsed: DocumentRequest, { headers }: Request): Form {
  return parsed.kind === 'packument' && (headers.get('accept') ?? '').includes(ABBREVIATED)
    ? 'abbreviated'
    : 'full'
}

/** Returns a part of a package's document: one version, or its tags. */
function partOf(document: string, parsed: Exclude<DocumentRequest, { kind: 'packument' }>): string {
  const { versions, 'dist-tags': tags = {} } = JSON.parse(document)
  if (parsed.kind === 'tags') return JSON.stringify(tags)
  const tagged = Object.hasOwn(tags, parsed.version) ? tags[parsed.version] : parsed.version
  if (!Object.hasOwn(versions, tagged))
    throw new PackageError(`The registry has no ${parsed.name}@${parsed.version}.`, 404)
  return JSON.stringify(versions[tagged])
}

/**
 * Returns a response with an ETag, or 304 if the client has the content (RFC 9110, section 13.1.2). It is not
 * compressed, which costs more than it saves on loopback.
 *
 * @param release called when the client has read everything, or has left
 */
function conditional(request: Request, text: string, type: string, release: Release): Response {
  const etag = `"${Bun.hash(text).toString(36)}"`
  const headers = {
    etag,
    'content-type': type,
    'cache-control': 'private, no-cache',
    vary: 'accept, user-agent',
  }
  const isKnown = request.headers.get('if-none-match') === etag
  if (!isKnown && request.method === 'GET' && text.length >= PIECE_BYTES)
    return new Response(piecesOf(new TextEncoder().encode(text), release), { headers })
  release()
  return isKnown ? new Response(null, { status: 304, headers }) : new Response(text, { headers })
}
