/** The relay of package registries (npm, PyPI, Go and others) that servers install from, and its cache. */
import { join } from 'node:path'
import type { SandboxPaths } from '../../compute/sandbox.ts'
import { GRADLE_SETTINGS, GRADLE_SETTINGS_FILE, toolsOnHost } from '../../compute/tools.ts'
import type { Workspace } from '../../compute/workspace.ts'
import type { Logger } from '../../runtime/logger.ts'
import { MASK } from '../../runtime/masks.ts'
import { once } from '../../runtime/once.ts'
import type { Random } from '../../runtime/random.ts'
import {
  cacheEnvironment,
  cargoSettings,
  commandEnvironment,
  type InstallTarget,
  installEnvironment,
  type RelayAccess,
} from './environment.ts'
import {
  type MachineRegistries,
  type MachineSettings,
  readAuthorities,
  readMachineRegistries,
} from './machine-registries.ts'
import type { Aside } from './programs/go-library.ts'
import type { Relay } from './relay.ts'
import { RelayIdentity } from './relay-identity.ts'

/** Default limit of the cache on disk, in bytes. @bound peer */
const MAX_BYTES = 2 * 2 ** 30

/** Directory of the cache in the data directory. */
const DIRECTORY = 'packages'

/** Largest number of problems kept per server. @bound peer */
const MAX_PROBLEMS = 20

const NO_CACHE = 'there is no package cache: installs go to the registry by themselves'

/** Options of `Packages`. */
export interface PackagesOptions {
  /** Absolute path of the data directory. The cache is its subdirectory `packages`. */
  dataDir: string
  /** URL of the npm registry that packages are fetched from. */
  registry: string
  /** Where the settings are that name the other registries. */
  machine: MachineSettings
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

/** A server as a client of the relay. */
interface RelayClient {
  readonly serverId: string
  readonly token: string
  problems: string[]
}

/**
 * Gives the commands of servers access to a relay of package registries. All servers share it and none can change it. It
 * listens from the first server on; nothing is loaded or written to disk before its first request.
 */
export class Packages {
  readonly #options: PackagesOptions
  /** By the hash of the token, so the time of a look-up reveals nothing about a token. */
  readonly #clients = new Map<string, RelayClient>()
  /** Null if it cannot listen; undefined before it is asked to. */
  #listener: Bun.Server<undefined> | null | undefined
  #relay: Promise<Relay | null> | null = null
  readonly #machine = once(() => this.#readMachine())
  readonly #identity: RelayIdentity
  /** Absolute path of the directory of tools, as berth sees it. */
  #tools: string | null = null
  /** Where Go's standard library is compiled; null before the instance has servers, and for servers elsewhere. */
  aside: Aside | null = null
  #stopped = false

  constructor(options: PackagesOptions) {
    this.#options = options
    this.#identity = new RelayIdentity(join(options.dataDir, DIRECTORY), options.random)
  }

  /** The port of this machine's loopback at which the relay listens; null if it cannot. */
  get port(): number | null {
    this.#listener ??= this.#stopped ? null : this.#listen()
    return this.#listener?.port ?? null
  }

  /**
   * Returns the variables of every command of a server: where its caches are, and the registries in the relay for package
   * managers whose settings in a project and of a user are stronger. Without a relay they use their own registries.
   */
  commandEnvironment(serverId: string, paths: SandboxPaths): Record<string, string> {
    const { dataDir } = this.#options
    this.#tools ??= toolsOnHost(dataDir, paths.tools)
    const access = this.#access(serverId, paths)
    return { ...cacheEnvironment(paths), ...(access === null ? {} : commandEnvironment(access)) }
  }

  /**
   * Returns the environment for a command that installs or builds, in a directory that is known. It makes Yarn 2 and
   * later, pnpm from 11 on and every Bun use the relay too. Settings of the project take precedence.
   *
   * @param target directory in which the command runs
   */
  async environment(serverId: string, target: InstallTarget): Promise<Record<string, string>> {
    const access = this.#access(serverId, target.paths)
    return access === null ? {} : installEnvironment({ ...target, ...access })
  }

  /** Writes the settings of package managers that take none from variables. @param caches the server's */
  async prepareCaches(serverId: string, caches: Pick<Workspace, 'read' | 'write'>): Promise<void> {
    const origin = this.#origin
    if (origin === null) return
    const files = {
      'cargo/config.toml': cargoSettings({ origin, token: this.tokenOf(serverId) }),
      [`gradle/${GRADLE_SETTINGS_FILE}`]: GRADLE_SETTINGS,
    }
    for (const [path, text] of Object.entries(files)) {
      const settings = new TextEncoder().encode(text)
      try {
        const there = await caches.read(path, settings.length + 1).catch(() => null)
        if (there === null || Buffer.compare(there, settings) !== 0) await caches.write(path, settings)
      } catch (error) {
        // A program of the server has put something else there: only its tool goes without the relay.
        const { logger } = this.#options
        logger.warn('the settings of a package manager could not be written', {
          server: serverId,
          path,
          error,
        })
      }
    }
  }

  /** Returns the credential of a server for the relay, which logs must not show. */
  tokenOf(serverId: string): string {
    return this.#clientOf(serverId).token
  }

  /** Returns a text with `***` in the place of the credentials of servers for the relay. */
  hide(text: string): string {
    if (!/[0-9A-Za-z]{43}/.test(text)) return text
    return [...this.#clients.values()].reduce((shown, { token }) => shown.replaceAll(token, MASK), text)
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
    await (await this.#relay)?.stop()
  }

  get #origin(): string | null {
    const { port } = this
    return port === null ? null : `http://127.0.0.1:${port}`
  }

  #access(serverId: string, paths: SandboxPaths): RelayAccess | null {
    const origin = this.#origin
    return origin === null ? null : { paths, origin, token: this.tokenOf(serverId), machine: this.#machine() }
  }

  #readMachine(): MachineRegistries {
    const machine = readMachineRegistries(this.#options.machine)
    for (const message of machine.leftOut)
      this.#options.logger.warn('a registry is left out', { reason: message })
    return machine
  }

  #listen(): Bun.Server<undefined> | null {
    // The same port as before, if it is free: caches know packages by their addresses.
    for (const port of [this.#identity.port, 0]) {
      try {
        const listener = this.#serve(port)
        this.#identity.port = listener.port ?? 0
        return listener
      } catch (error) {
        if (port === 0) this.#options.logger.warn(NO_CACHE, { error })
      }
    }
    return null
  }

  #serve(port: number): Bun.Server<undefined> {
    return Bun.serve({
      hostname: '127.0.0.1',
      port,
      // The first byte of a large package may take long.
      idleTimeout: 0,
      reusePort: false,
      development: false,
      maxRequestBodySize: 64 * 1024,
      fetch: async (request) => {
        this.#relay ??= this.#open()
        const relay = await this.#relay
        const error = 'berth has no package cache; its log says why.'
        return relay === null ? Response.json({ error }, { status: 503 }) : relay.respond(request)
      },
    })
  }

  async #open(): Promise<Relay | null> {
    const { dataDir, registry, machine, logger, now, maxBytes = MAX_BYTES } = this.#options
    try {
      const { Relay } = await import('./relay.ts')
      const npm = {
        name: 'npm',
        protocol: 'npm',
        address: registry.replace(/\/+$/, ''),
        setting: '--npm-registry',
      } as const
      const relay = new Relay({
        directory: join(dataDir, DIRECTORY),
        mounts: [npm, ...this.#machine().mounts],
        authorities: once(() => readAuthorities(machine)),
        origin: this.#origin ?? '',
        tools: this.#tools ?? '',
        aside: () => this.aside,
        machine: { path: machine.environment.PATH ?? '', variables: machine.environment, dataDir },
        maxBytes,
        logger,
        now,
        authenticate: (token) => this.#clients.get(hashOf(token))?.serverId ?? null,
        onProblem: (serverId, message) => this.#addProblem(serverId, message),
      })
      await relay.open()
      return relay
    } catch (error) {
      this.#options.logger.warn(NO_CACHE, { error })
      return null
    }
  }

  #clientOf(serverId: string): RelayClient {
    for (const client of this.#clients.values()) if (client.serverId === serverId) return client
    const client = { serverId, token: this.#identity.tokenOf(serverId), problems: [] }
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
