import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Isolation } from '../../config/config.ts'
import type { Connection } from '../../runtime/connection.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { isGone } from '../../runtime/if-present.ts'
import { once } from '../../runtime/once.ts'
import {
  type ComputeDriver,
  ComputeError,
  type Handle,
  type Limits,
  type Probe,
  type Sandbox,
} from '../driver.ts'
import { chooseLimiter } from '../limits/choose.ts'
import type { Limiter } from '../limits/limiter.ts'
import { findMarked, ProcessScanner } from '../processes.ts'
import { selfCommand } from '../self.ts'
import { killAll } from '../terminate.ts'
import type { Workspace } from '../workspace.ts'
import { DiskWatch } from './disk-watch.ts'
import type { LocalDriverOptions, LocalIsolation } from './isolation.ts'
import { findOccupants } from './mount-tables.ts'
import { checkOpenFiles, maxOpenFiles } from './open-files.ts'
import type { LocalSandbox } from './sandbox.ts'
import { ServerDirectories } from './server-directories.ts'

/** What `Enforced.network` says. */
const NETWORK_NAMES = {
  redirected: 'own, outbound filtered',
  proxy: 'own, outbound by proxy',
  shared: 'shared with this machine',
} as const

/** The server that is started to see how connections leave it, and what it may use. */
const TRIAL_SERVER = 'srv_trial'
const TRIAL_LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 }

/** Runs servers as processes of this machine; a `LocalIsolation` decides how they are isolated. */
export class LocalDriver implements ComputeDriver {
  readonly #isolation: LocalIsolation
  readonly #options: LocalDriverOptions
  readonly #directories: ServerDirectories
  readonly #scanner = new ProcessScanner()
  readonly #senders = once(async () => new (await import('./sender.ts')).SenderSearch())
  readonly #relay = once(async () => {
    const { OutboundRelay, relayWorkerUrl } = await import('./network/outbound/relay.ts')
    const { logger } = this.#options
    // Of this process, which may start another program as sandboxd.
    const { compiled } = selfCommand(process.execPath, Bun.main)
    return new OutboundRelay({ logger, worker: relayWorkerUrl(compiled) })
  })
  readonly #networks = once(async () => {
    const { NetworkLoader } = await import('./network/network-setup.ts')
    return new NetworkLoader(this.#options.projectPorts, this.#options.path)
  })
  readonly #maxOpenFiles = once(maxOpenFiles)
  #limiter: Promise<Limiter> | null = null
  #outboundKind: Promise<'redirected' | 'proxy'> | null = null

  constructor(isolation: LocalIsolation, options: LocalDriverOptions) {
    this.#isolation = isolation
    this.#options = options
    this.#directories = new ServerDirectories(options.dataDir)
  }

  get name(): Isolation {
    return this.#isolation.name
  }

  async probe(): Promise<Probe> {
    try {
      const result = await this.#isolation.probe()
      if (!result.available) return result
      const { network, notes } = result
      return {
        available: true,
        network,
        enforced: async () => {
          const { enforced } = await this.#chosenLimiter()
          const named = NETWORK_NAMES[network === 'shared' ? network : await this.#outbound()]
          return { isolation: this.name, ...enforced, disk: 'watchdog', network: named }
        },
        ...(notes === undefined || notes.length === 0 ? {} : { notes }),
      }
    } catch (error) {
      const reason = `Its probe failed: ${messageOf(error)}`
      return { available: false, reason, remedy: 'Run `berth doctor` and look at the log.' }
    }
  }

  create(serverId: string): Promise<Handle> {
    return this.#directories.create(serverId)
  }

  async start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    const { logger } = this.#options
    checkOpenFiles(this.#maxOpenFiles())
    try {
      const sandbox = await this.#launch(serverId, handle, limits)
      const usage = (): Promise<number> => this.#usage(handle)
      const watch = new DiskWatch({ limit: limits.storageBytes, usage, sandbox, logger })
      watch.start()
      sandbox.watchStorage(watch)
      return sandbox
    } catch (error) {
      if (error instanceof ComputeError) throw error
      throw new ComputeError(`The server does not start: ${messageOf(error)}`, { cause: error })
    }
  }

  workspace(handle: Handle): Workspace {
    return this.#options.workspace(this.#directories.workspace(handle))
  }

  async reap(handles: Handle[]): Promise<void> {
    if (handles.length === 0) return
    const markers = new Set(handles.map((handle) => this.#directories.serverMarker(handle)))
    const names = new Set(handles.map((handle) => this.#directories.name(handle)))
    await killAll(() => [...new Set([...findMarked(markers), ...this.#occupantsOf(names)])])
    const limiter = await this.#chosenLimiter()
    await limiter.sweep([...names])
  }

  #occupantsOf(serverIds: ReadonlySet<string>): number[] {
    const occupants = findOccupants(this.#options.dataDir)
    return occupants.filter(({ serverId }) => serverIds.has(serverId)).map(({ pid }) => pid)
  }

  destroy(handle: Handle): Promise<void> {
    return this.#directories.destroy(handle)
  }

  sweep(known: Handle[]): Promise<void> {
    return this.#directories.sweep(known)
  }

  async isSentFromServer(connection: Connection): Promise<boolean> {
    const senders = await this.#senders()
    return senders.isSentFromServer(connection)
  }

  /**
   * Returns the bytes of everything that the server can write: its workspace, and its temporary directory if that is
   * on disk.
   */
  async #usage(handle: Handle): Promise<number> {
    const temporary = join(this.#directories.dir(handle), 'tmp')
    const inTemporary = await this.#options
      .workspace(temporary)
      .usage()
      .catch((error: unknown) => {
        if (isGone(error)) return 0
        throw error
      })
    return (await this.workspace(handle).usage()) + inTemporary
  }

  /** Returns how connections leave servers with their own network: as seen at a server, or at one started for it. */
  #outbound(): Promise<'redirected' | 'proxy'> {
    this.#outboundKind ??= this.#tryOutbound()
    return this.#outboundKind
  }

  async #tryOutbound(): Promise<'redirected' | 'proxy'> {
    const handle = await this.create(TRIAL_SERVER)
    try {
      const sandbox = await this.#launch(TRIAL_SERVER, handle, TRIAL_LIMITS)
      await sandbox.stop()
      return sandbox.leaves ?? 'proxy'
    } finally {
      await this.destroy(handle)
    }
  }

  async #launch(id: string, handle: Handle, limits: Limits): Promise<LocalSandbox> {
    const dir = this.#directories.dir(handle)
    const workspace = this.#directories.workspace(handle)
    if (!lstatSync(workspace, { throwIfNoEntry: false })?.isDirectory()) {
      throw new ComputeError(`The server's files are gone: there is no folder ${workspace}.`)
    }
    const marker = this.#directories.serverMarker(handle)
    const launch = await this.#isolation.launch({ id, dir, workspace, marker, limits })
    const hasNetwork = launch.descriptors === 'sockets'
    const [limiter, networks, relay, { LocalSandbox }] = await Promise.all([
      this.#chosenLimiter(),
      hasNetwork ? this.#networks() : null,
      hasNetwork ? this.#relay() : null,
      import('./sandbox.ts'),
    ])
    relay?.warmUp()
    const group = limiter.openGroup(id, limits)
    try {
      const memoryEnforcedBy = limiter.enforced.memory
      const sandbox = await LocalSandbox.start({
        id,
        options: this.#options,
        relay,
        launch,
        marker,
        group,
        scanner: this.#scanner,
        limits,
        memoryEnforcedBy,
        networks,
      })
      this.#reportOutbound(sandbox)
      return sandbox
    } catch (error) {
      await group.close()
      throw error
    }
  }

  /** Logs, once, that programs of servers find no way out by themselves. */
  #reportOutbound({ leaves, unredirected }: LocalSandbox): void {
    const isFirst = this.#outboundKind === null
    if (leaves === null) return
    this.#outboundKind ??= Promise.resolve(leaves)
    if (!isFirst || unredirected === null) return
    this.#options.logger.warn(
      `Servers reach the outside by a proxy, which some programs do not use: ${unredirected} Install nftables (nft) and util-linux (nsenter); the kernel needs nft_redir.`,
    )
  }

  /** Chooses the limiter, and removes what killed berths left of theirs. */
  async #chooseLimiter(): Promise<Limiter> {
    const limiter = await chooseLimiter(this.#directories.dataMarker(), this.#isolation.userNamespace)
    await limiter.sweep([])
    return limiter
  }

  #chosenLimiter(): Promise<Limiter> {
    this.#limiter ??= this.#chooseLimiter()
    return this.#limiter
  }
}
