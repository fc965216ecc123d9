import { join } from 'node:path'
import { PROGRAMS_DIRECTORY, type ToolPlaces } from '../../compute/tools.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Budget, type Release } from './budget.ts'
import { CratesProtocol } from './crates.ts'
import { DiskCache } from './disk.ts'
import { LARGE_AT_ONCE } from './documents.ts'
import { Files, PART_BYTES } from './files.ts'
import { GoProtocol } from './go.ts'
import { MavenProtocol } from './maven.ts'
import type { Mount } from './mount.ts'
import { NpmProtocol } from './npm/protocol.ts'
import { makeParts, type RegistryParts } from './parts.ts'
import { PackageError } from './problem.ts'
import { type Aside, GoLibrary } from './programs/go-library.ts'
import { Programs, type ProgramWish } from './programs/programs.ts'
import { PypiProtocol } from './pypi.ts'
import { RubyGemsProtocol } from './rubygems.ts'
import { Upstream } from './upstream.ts'
import type { Client, Presented, Protocol, Wanted } from './wanted.ts'

/** Parses a path with a credential: that, the registry's name, and the path below it. */
const IN_PATH = /^\/-\/([0-9A-Za-z]{43})\/([a-z0-9-]+)(\/.*)$/

/** What names a registry in a project, by protocol. */
const SETTINGS = {
  npm: '.npmrc',
  pypi: 'settings or a secret (PIP_INDEX_URL)',
  go: 'secrets (GOPROXY)',
  crates: '.cargo/config.toml',
  maven: 'pom.xml or settings.xml',
  rubygems: 'Gemfile',
} as const

type WantedDocument = Extract<Wanted, { kind: 'document' }>

/** Bytes of a response from which it is sent in pieces of this size, as the client reads. */
const PIECE_BYTES = 64 * 1024

/** Most bytes of responses under way to a server. Package managers read what they asked for, so none of them waits. */
const UNDER_WAY_BYTES = 64 * 2 ** 20

/** Characters from which a document takes long enough to be rewritten or parsed that everything else gets a turn before. */
const LARGE_DOCUMENT = 2 ** 20

/** Options of a relay. */
interface RelayOptions {
  /** Absolute path of the cache's directory. */
  directory: string
  /** The registries. */
  mounts: readonly Mount[]
  /** Returns the certificate authorities of the machine, as PEM. */
  authorities: () => readonly string[]
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
  /** Absolute path of the directory of tools that servers see, as berth sees it. */
  tools: string
  aside: () => Aside | null
  /** What says which toolchains the machine has. */
  machine: ToolPlaces
}

/** The protocols that a relay speaks. */
const PROTOCOLS: Readonly<Record<Mount['protocol'], new (parts: RegistryParts) => Protocol>> = {
  npm: NpmProtocol,
  pypi: PypiProtocol,
  go: GoProtocol,
  crates: CratesProtocol,
  maven: MavenProtocol,
  rubygems: RubyGemsProtocol,
}

/** What stands in the place of a registry's name in paths of package managers. */
const PROGRAMS = 'programs'

/** The path below it of Go's compiled library. */
const GO = '/go'

/** The registry that a client reaches by the relay's address alone, with its credential in a header. */
const IN_HEADER = 'npm'

/** A registry of a relay. */
interface Registry {
  readonly protocol: Protocol
  readonly parts: RegistryParts
}

/** A request to a registry of a relay. */
interface Asked {
  readonly serverId: string
  readonly registry: Registry
  readonly client: Client
  readonly request: Request
}

/**
 * A read-only relay of package registries. It fetches packages on request and caches them. Servers reach
 * the cache only through it, so none of them can change the packages of another.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #stopping = new AbortController()
  readonly #disk: DiskCache
  readonly #registries = new Map<string, Registry>()
  readonly #files: Files
  #loadedPrograms: Programs | null = null
  readonly #goLibrary: GoLibrary
  readonly #underWay = new Budget(UNDER_WAY_BYTES)
  /** The large documents that are made a response of, one at a time for each server. */
  readonly #inWork = new Budget(1)

  constructor(options: RelayOptions) {
    const { directory, maxBytes, now, logger, mounts, authorities } = options
    this.#options = options
    this.#disk = new DiskCache(directory, maxBytes, now)
    const shared = { disk: this.#disk, large: new Budget(LARGE_AT_ONCE), logger, now }
    for (const { name, protocol, address, setting } of mounts) {
      const unreachable = `Check the network, or the address of the registry (${setting})`
      const credential = `A package that needs a credential needs a registry of its own in the ${SETTINGS[protocol]} of the project`
      const remedies = { unreachable, credential }
      const stopping = this.#stopping.signal
      const parts = makeParts(
        name,
        new Upstream({ address, remedies, authorities, logger, stopping }),
        shared,
      )
      this.#registries.set(name, { parts, protocol: new PROTOCOLS[protocol](parts) })
    }
    this.#files = new Files(shared)
    this.#goLibrary = new GoLibrary(options)
  }

  /** Opens the cache. @throws the system's error if it cannot */
  async open(): Promise<void> {
    await this.#disk.open()
  }

  /** Cancels requests under way. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#files.drain()
    for (const { parts } of this.#registries.values()) await parts.documents.drain()
    await this.#disk.drain()
  }

  /** Responds to a package manager. */
  async respond(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    // Not every package manager can send a credential in a header.
    const [, inPath, name = IN_HEADER, path = pathname] = IN_PATH.exec(pathname) ?? []
    const token = inPath ?? /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    const serverId = token === undefined ? null : this.#options.authenticate(token)
    if (serverId === null) {
      const error =
        'This relay of registries needs the credential that berth gives to the commands of its servers.'
      return Response.json({ error }, { status: 401, headers: { 'www-authenticate': 'Bearer' } })
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const error = `This relay of registries is read-only: there is no ${request.method} (publishing, searching, audits, accounts).`
      return Response.json({ error }, { status: 405, headers: { allow: 'GET, HEAD' } })
    }
    const { origin } = this.#options
    const client = {
      userAgent: request.headers.get('user-agent'),
      accept: request.headers.get('accept') ?? '',
      base: inPath === undefined ? origin : `${origin}/-/${inPath}/${name}`,
    }
    if (name === PROGRAMS && inPath !== undefined) return this.#serveProgram(serverId, path, request)
    const registry = this.#registries.get(name)
    const wanted = registry?.protocol.parse(path, client) ?? null
    if (registry === undefined || wanted === null) {
      const error = 'This relay gives packages, their versions and their files, nothing else.'
      return Response.json({ error }, { status: 404 })
    }
    const asked = { serverId, registry, client, request }
    try {
      return await this.#serve(asked, wanted)
    } catch (error) {
      return this.#refusalResponse(asked, path, error)
    }
  }

  /**
   * Responds with the path of a package manager, which it fetches unless it is there, or of Go's compiled library; with `archive`,
   * with the package manager itself, for servers that do not see what berth keeps.
   */
  async #serveProgram(serverId: string, path: string, request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url)
    const named = (name: string): string | null => searchParams.get(name) || null
    const wish = { version: named('version'), hash: named('hash'), processor: named('processor') }
    try {
      const found = await (path === GO
        ? this.#goLibrary.find(searchParams)
        : this.#programs(path.slice(1), wish))
      if (found !== null && path !== GO && searchParams.has('archive')) return this.#programArchive(found)
      if (found !== null) return Response.json({ path: found })
      return Response.json({ error: 'There is no such program.' }, { status: 404 })
    } catch (error) {
      return this.#failure(serverId, path, error, true)
    }
  }

  /** Responds with the directory of a program, as tar. @param path of a file in it, relative to the directory of tools */
  async #programArchive(path: string): Promise<Response> {
    const { LocalWorkspace } = await import('../../compute/trees.ts')
    const [, hash = ''] = path.split('/')
    const files = new LocalWorkspace(join(this.#options.tools, PROGRAMS_DIRECTORY, hash))
    // Bun takes what is iterated over; the types of browsers do not.
    const body = files.pack() as unknown as ReadableStream<Uint8Array>
    return new Response(body, { headers: { 'content-type': 'application/x-tar' } })
  }

  async #programs(name: string, wish: ProgramWish): Promise<string | null> {
    const [npm, pypi] = [this.#registries.get('npm'), this.#registries.get('pypi')]
    if (npm === undefined || pypi === undefined) return null
    this.#loadedPrograms ??= new Programs({ files: this.#files, npm, pypi, tools: this.#options.tools })
    return this.#loadedPrograms.find(name, wish)
  }

  async #serve(asked: Asked, wanted: Wanted): Promise<Response> {
    if (wanted.kind === 'answer') return conditional(asked.request, wanted.present(asked.client), () => {})
    if (wanted.kind === 'file') return this.#serveFile(asked, wanted)
    const document = await asked.registry.parts.documents.get(wanted.source)
    const release = this.#underWay.tryAcquire(asked.serverId, document.length)
    if (release === null) return this.#serveLater(asked, wanted, document.length)
    return await this.#sendDocument(asked, wanted, document, release)
  }

  /** Waits until the server has read earlier responses, and has nothing in memory meanwhile. */
  async #serveLater(asked: Asked, wanted: WantedDocument, size: number): Promise<Response> {
    const release = await this.#underWay.acquire(asked.serverId, size)
    try {
      asked.request.signal.throwIfAborted()
      const document = await asked.registry.parts.documents.get(wanted.source)
      return await this.#sendDocument(asked, wanted, document, release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Returns a response with a document or a part of it, in the client's form. */
  async #sendDocument(
    { serverId, client, request }: Asked,
    wanted: WantedDocument,
    document: string,
    release: Release,
  ): Promise<Response> {
    const done = document.length < LARGE_DOCUMENT ? null : await this.#inWork.acquire(serverId, 1)
    try {
      if (done !== null) await new Promise<void>((resolve) => setImmediate(resolve))
      return conditional(request, wanted.present(document, client), release)
    } catch (error) {
      release()
      throw error
    } finally {
      done?.()
    }
  }

  async #serveFile(
    { serverId, registry, request }: Asked,
    wanted: Extract<Wanted, { kind: 'file' }>,
  ): Promise<Response> {
    const release = await this.#underWay.acquire(serverId, PART_BYTES)
    try {
      request.signal.throwIfAborted()
      const { size, body } = await this.#files.get(wanted, registry.parts)
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

  #refusalResponse({ serverId, registry }: Asked, path: string, error: unknown): Response {
    return this.#failure(serverId, path, error, registry.protocol.reportsMissing)
  }

  #failure(serverId: string, path: string, error: unknown, reportsMissing: boolean): Response {
    const problem = error instanceof PackageError ? error : null
    const message = problem?.message ?? 'The package cache failed; see the log of berth.'
    if (problem === null) this.#options.logger.error('the package cache failed', { asked: path, error })
    const status = problem?.status ?? 424
    if (status !== 404 || reportsMissing) this.#options.onProblem(serverId, message)
    return Response.json({ error: message }, { status })
  }
}

/** Returns a file's bytes, piece by piece unless they are few. @param release called when they are sent */
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

/**
 * Returns a response with an ETag, or 304 if the client has the content (RFC 9110, section 13.1.2). It is not
 * compressed, which costs more than it saves on loopback.
 *
 * @param release called when the client has read everything, or has left
 */
function conditional(request: Request, { body, type }: Presented, release: Release): Response {
  // Bundler takes the ETag for the MD5 of what it got.
  const etag = `"${new Bun.CryptoHasher('md5').update(body).digest('hex')}"`
  const headers = {
    etag,
    'content-type': type,
    'cache-control': 'private, no-cache',
    vary: 'accept, user-agent',
  }
  const isKnown = request.headers.get('if-none-match') === etag
  if (!isKnown && request.method === 'GET' && body.length >= PIECE_BYTES) {
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
    return new Response(piecesOf(bytes, release), { headers })
  }
  release()
  return isKnown ? new Response(null, { status: 304, headers }) : new Response(body, { headers })
}
