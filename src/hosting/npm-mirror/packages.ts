import { join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'
import { base62, type Random } from '../../runtime/random.ts'
import { type InstallTarget, installEnvironment } from './environment.ts'
import type { NpmMirror } from './mirror.ts'

/** Default limit of the cache on disk, in bytes. */
const MAX_BYTES = 2 * 2 ** 30

/** Largest number of problems kept per server. */
const MAX_PROBLEMS = 20

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
 * Gives commands that install packages access to a mirror of the npm registry. All servers share it and none can
 * change it. Nothing is loaded, listens or is written to disk before the first install.
 */
export class Packages {
  readonly #options: PackagesOptions
  /** By the hash of the token, so the time of a look-up reveals nothing about a token. */
  readonly #clients = new Map<string, MirrorClient>()
  #mirror: Promise<NpmMirror | null> | null = null
  #stopped = false

  constructor(options: PackagesOptions) {
    this.#options = options
  }

  /**
   * Returns the environment for a command that installs or builds. It makes npm, pnpm, Yarn 2 and later, Bun and
   * Corepack use the mirror. Settings of the project take precedence. If the mirror cannot start, which is logged,
   * returns no variables, and the package managers use their own registries.
   *
   * @param target directory in which the command runs
   */
  async environment(serverId: string, target: InstallTarget): Promise<Record<string, string>> {
    const mirror = await this.#ensureStarted()
    if (mirror === null) return {}
    return installEnvironment({ ...target, origin: mirror.origin, token: this.#clientOf(serverId).token })
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
