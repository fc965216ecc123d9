import { join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'
import { base62, type Random } from '../../runtime/random.ts'
import { commandEnvironment, type InstallTarget, installEnvironment } from './environment.ts'
import type { NpmMirror } from './mirror.ts'

/** Default limit of the cache on disk, in bytes. */
const MAX_BYTES = 2 * 2 ** 30

/** Largest number of problems kept per server. */
const MAX_PROBLEMS = 20

const NO_CACHE = 'there is no package cache: installs go to the registry by themselves'

/** Options of `Packages`. */
export interface PackagesOptions {
  /** Absolute path of the data directory. The cache is its subdirectory `packages`. */
  dataDir: string
  /** URL of the npm registry that packages are fetched from. */
  registry: string
  random: Random
  logger: Logger
  /**
   * Returns milliseconds since 1970 by this machine's clock: the registry does not follow a clock that tests have
   * moved.
   */
  now: () => number
  /** Limit of the cache on disk, in bytes. */
  maxBytes?: number
}

/** A server as a client of the mirror. */
interface MirrorClient {
  readonly serverId: string
  readonly token: string
  problems: string[]
}

/**
 * Gives the commands of servers access to a mirror of the npm registry. All servers share it and none can change it. It
 * listens from the first server on; nothing is loaded or written to disk before its first request.
 */
export class Packages {
  readonly #options: PackagesOptions
  /** By the hash of the token, so the time of a look-up reveals nothing about a token. */
  readonly #clients = new Map<string, MirrorClient>()
  /** Null if it cannot listen; undefined before it is asked to. */
  #listener: Bun.Server<undefined> | null | undefined
  #mirror: Promise<NpmMirror | null> | null = null
  #stopped = false

  constructor(options: PackagesOptions) {
    this.#options = options
  }

  /** The port of this machine's loopback at which the mirror listens; null if it cannot. */
  get port(): number | null {
    this.#listener ??= this.#stopped ? null : this.#listen()
    return this.#listener?.port ?? null
  }

  /**
   * Returns the variables of every command of a server: settings for npm, pnpm up to 10, Corepack and the server's own
   * Bun, weaker than those of a project and a user. Without a mirror there are none, and package managers use their own
   * registries.
   *
   * @param tools the directory of tools of the sandbox (`Sandbox.tools`)
   */
  commandEnvironment(serverId: string, tools: string): Record<string, string> {
    const origin = this.#origin
    return origin === null ? {} : commandEnvironment({ tools, origin, token: this.tokenOf(serverId) })
  }

  /**
   * Returns the environment for a command that installs or builds, in a directory that is known. It makes Yarn 2 and
   * later, pnpm from 11 on and every Bun use the mirror too. Settings of the project take precedence.
   *
   * @param target directory in which the command runs
   */
  async environment(serverId: string, target: InstallTarget): Promise<Record<string, string>> {
    const origin = this.#origin
    return origin === null ? {} : installEnvironment({ ...target, origin, token: this.tokenOf(serverId) })
  }

  /** Returns the credential of a server for the mirror, which logs must not show. */
  tokenOf(serverId: string): string {
    return this.#clientOf(serverId).token
  }

  /** Returns the problems of a server since the last call. Not every package manager prints the reason. */
  takeProblems(serverId: string): readonly string[] {
    for (const client of this.#clients.values()) {
      if (client.serverId !== serverId) continue
      const { problems } = client
      client.problems = []
      return problems
    }
    return []
  }

  /** Revokes the credential of a deleted server. */
  forget(serverId: string): void {
    for (const [hash, client] of this.#clients) if (client.serverId === serverId) this.#clients.delete(hash)
  }

  /** Cancels downloads and stops listening. Further calls have no effect. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#clients.clear()
    await this.#listener?.stop(true)
    await (await this.#mirror)?.stop()
  }

  get #origin(): string | null {
    const { port } = this
    return port === null ? null : `http://127.0.0.1:${port}`
  }

  #listen(): Bun.Server<undefined> | null {
    try {
      return Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        // The first byte of a large package may take long.
        idleTimeout: 0,
        reusePort: false,
        development: false,
        maxRequestBodySize: 64 * 1024,
        fetch: async (request) => {
          this.#mirror ??= this.#open()
          const mirror = await this.#mirror
          const error = 'berth has no package cache; its log says why.'
          return mirror === null ? Response.json({ error }, { status: 503 }) : mirror.respond(request)
        },
      })
    } catch (error) {
      this.#options.logger.warn(NO_CACHE, { error })
      return null
    }
  }

  async #open(): Promise<NpmMirror | null> {
    const { dataDir, registry, logger, now, maxBytes = MAX_BYTES } = this.#options
    try {
      const { NpmMirror } = await import('./mirror.ts')
      const mirror = new NpmMirror({
        directory: join(dataDir, 'packages'),
        registry: registry.replace(/\/+$/, ''),
        origin: this.#origin ?? '',
        maxBytes,
        logger,
        now,
        authenticate: (token) => this.#clients.get(hashOf(token))?.serverId ?? null,
        onProblem: (serverId, message) => this.#addProblem(serverId, message),
      })
      await mirror.open()
      return mirror
    } catch (error) {
      this.#options.logger.warn(NO_CACHE, { error })
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
