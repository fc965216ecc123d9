import { join } from 'node:path'
import type { Limits } from '../../../src/compute/driver.ts'
import type { ExecCommand, Sandbox } from '../../../src/compute/sandbox.ts'
import type { Workspace } from '../../../src/compute/workspace.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Packages, type PackagesOptions } from '../../../src/hosting/registries/packages.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Bench, driverOn, type Result, run } from '../../compute/bench.ts'
import { type Publication, Registry } from './registry.ts'

/** The strongest tier of this machine. */
export const TIER: Isolation = await (async () => {
  for (const name of ['bubblewrap', 'landlock'] as const) {
    await using bench = new Bench(name)
    if ((await bench.driver.probe()).available) return name
  }
  return 'none'
})()

/** What a package manager needs. */
const LIMITS: Partial<Limits> = { memoryBytes: 2 ** 30, processes: 500, storageBytes: 2 ** 29 }

/** A registry, a package cache in front of it, and servers that install from it. */
export class World implements AsyncDisposable {
  readonly registry: Registry
  readonly bench: Bench
  readonly said: string[] = []
  /** Milliseconds that the time is ahead. */
  ahead = 0
  packages: Packages
  readonly #options: Partial<PackagesOptions>

  constructor(publications: readonly Publication[], options: Partial<PackagesOptions> = {}) {
    this.registry = new Registry(publications)
    this.bench = new Bench(TIER)
    this.#options = options
    this.packages = this.#open()
  }

  get cache(): string {
    return join(this.bench.dataDir, 'packages')
  }

  #open(): Packages {
    return new Packages({
      dataDir: this.bench.dataDir,
      registry: this.registry.url,
      machine: NO_SETTINGS,
      random: systemRandom,
      logger: createLogger('warn', (line) => void this.said.push(line), Date.now),
      now: () => Date.now() + this.ahead,
      ...this.#options,
    })
  }

  /** Another berth on the same data folder. */
  async restart(): Promise<void> {
    await this.packages.stop()
    this.packages = this.#open()
  }

  /** A new server with a few files. */
  async server(id: string, files: Record<string, string | object> = {}): Promise<Server> {
    const handle = await this.bench.driver.create(id)
    const server = new Server(this, id, await this.bench.startAgain(id, handle, LIMITS), () =>
      driverOn(TIER, this.bench.dataDir).workspace(handle),
    )
    for (const [path, content] of Object.entries(files)) {
      const text = typeof content === 'string' ? content : JSON.stringify(content)
      await server.workspace.write(path, new TextEncoder().encode(text))
    }
    return server
  }

  /** The variables with which a server asks the mirror. */
  environment(serverId: string): Promise<Record<string, string>> {
    return this.packages.environment(serverId, NOWHERE)
  }

  /** Asks the mirror as a server does. */
  async ask(path: string, { serverId = 'srv_ask', ...init }: RequestInit & { serverId?: string } = {}) {
    const env = await this.environment(serverId)
    const headers = new Headers(init.headers)
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${env.BERTH_PACKAGES_TOKEN}`)
    return fetch(`${env.BERTH_PACKAGES_URL}${path}`, { ...init, headers })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.packages.stop()
    await this.registry.cut()
    await this.bench[Symbol.asyncDispose]()
  }
}

/** A machine without settings of package managers. */
export const NO_SETTINGS = { environment: {}, home: null, etc: '/nowhere' }

export const NO_PATHS = { tools: '/nowhere', home: '/nowhere', caches: '/nowhere' }

const NOWHERE = {
  paths: NO_PATHS,
  workspace: { read: () => Promise.reject(new Error('nothing')) },
  directory: '',
}

/** A server of a world. */
export class Server {
  constructor(
    readonly world: World,
    readonly id: string,
    readonly sandbox: Sandbox,
    readonly open: () => Workspace,
  ) {}

  get workspace(): Workspace {
    return this.open()
  }

  /** Runs a command with the environment of an install. */
  async install(command: string, { cwd = '', env, ...rest }: Partial<ExecCommand> = {}): Promise<Result> {
    const place = { paths: this.sandbox, workspace: this.workspace, directory: cwd }
    const given = await this.world.packages.environment(this.id, place)
    this.sandbox.forward(Number(new URL(given.BERTH_PACKAGES_URL ?? '').port))
    return run(this.sandbox, command, { timeoutMs: 50_000, cwd, env: { ...given, ...env }, ...rest })
  }

  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.workspace.read(path))
  }
}
