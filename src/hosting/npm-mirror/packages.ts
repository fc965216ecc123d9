import { join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'
import { base62, type Random } from '../../runtime/random.ts'
import { type InstallTarget, installEnvironment } from './environment.ts'
import type { NpmMirror } from './mirror.ts'

/** What packages take on disk if nothing else is said, bytes. */
const MAX_BYTES = 2 * 2 ** 30

/** Most that is kept of what one server was refused. */
const MAX_PROBLEMS = 20

/** What packages are installed with. */
export interface PackagesOptions {
  /** Absolute path of the data directory; the cache is its `packages`. */
  dataDir: string
  /** The npm registry that packages come from. */
  registry: string
  random: Random
  logger: Logger
  /** Milliseconds since 1970, of this machine: a registry knows nothing of a clock that is moved. */
  now: () => number
  /** Most bytes that the cache takes on disk. */
  maxBytes?: number
}

/** What one server is given. */
interface MirrorClient {
  readonly serverId: string
  readonly token: string
  problems: string[]
}

/**
 * What commands that install packages are given: the way to a mirror of the npm registry, which all servers share and
 * none can change. Nothing is loaded, listens or lies on disk until the first install asks.
 */
export class Packages {
  readonly #options: PackagesOptions
  /** By the hash of their tokens: how long a look-up takes says nothing of a token then. */
  readonly #clients = new Map<string, MirrorClient>()
  #mirror: Promise<NpmMirror | null> | null = null
  #stopped = false

  constructor(options: PackagesOptions) {
    this.#options = options
  }

  /**
   * The environment for a command that installs or builds: with it npm, pnpm, Yarn 2 and later, Bun and Corepack ask
   * the mirror. Settings of the project win. Where the mirror cannot be had, which is logged, they are left to
   * themselves.
   *
   * @param place where the command runs
   */
  async environment(serverId: string, place: InstallTarget): Promise<Record<string, string>> {
    const mirror = await this.#ensureStarted()
    if (mirror === null) return {}
    return installEnvironment({ ...place, origin: mirror.origin, token: this.#clientOf(serverId).token })
  }

  /** Takes what a server was refused since this was asked last: not every package manager prints the reason. */
  takeProblems(serverId: string): readonly string[] {
    for (const client of this.#clients.values()) {
      if (client.serverId !== serverId) continue
      const { problems } = client
      client.problems = []
      return problems
    }
    return []
  }

  /** Takes a server's credential back: it has gone. */
  forget(serverId: string): void {
    for (const [hash, client] of this.#clients) if (client.serverId === serverId) this.#clients.delete(hash)
  }

  /** Ends downloads and listens no more. Calling it again is harmless. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#clients.clear()
    await (await this.#mirror)?.stop()
  }

  #ensureStarted(): Promise<NpmMirror | null> {
    if (this.#stopped) return Promise.resolve(null)
    this.#mirror ??= this.#start()
    return this.#mirror
  }

  async #start(): Promise<NpmMirror | null> {
    const { dataDir, registry, logger, now, maxBytes = MAX_BYTES } = this.#options
    try {
      const { NpmMirror } = await import('./mirror.ts')
      const mirror = new NpmMirror({
        directory: join(dataDir, 'packages'),
        registry: registry.replace(/\/+$/, ''),
        maxBytes,
        logger,
        now,
        authenticate: (token) => this.#clients.get(hashOf(token))?.serverId ?? null,
        onProblem: (serverId, message) => this.#addProblem(serverId, message),
      })
      await mirror.start()
      return mirror
    } catch (error) {
      logger.warn('there is no package cache: installs go to the registry by themselves', { error })
      return null
    }
  }

  #clientOf(serverId: string): MirrorClient {
    for (const client of this.#clients.values()) if (client.serverId === serverId) return client
    const client = { serverId, token: base62(this.#options.random, 43), problems: [] }
    this.#clients.set(hashOf(client.token), client)
    return client
  }

  #addProblem(serverId: string, message: string): void {
    this.#options.logger.warn('a package could not be given', { server: serverId, reason: message })
    for (const client of this.#clients.values()) {
      if (client.serverId !== serverId || client.problems.includes(message)) continue
      client.problems = [...client.problems, message].slice(-MAX_PROBLEMS)
    }
  }
}

const hashOf = (token: string): string => new Bun.CryptoHasher('sha256').update(token).digest('hex')
