import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Isolation } from '../../config/config.ts'
import type { Connection } from '../../runtime/connection.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { isGone } from '../../runtime/if-present.ts'
import { once } from '../../runtime/once.ts'
import { base62, systemRandom } from '../../runtime/random.ts'
import { selfCommand } from '../../runtime/self.ts'
import { holdsInodes } from '../../system/files.ts'
import { processes } from '../../system/processes.ts'
import {
  type ComputeDriver,
  kindOf,
  type Limits,
  NO_WISH,
  type Placement,
  type Probe,
  type Remains,
  type Sender,
  type ServerHandle,
} from '../driver.ts'
import { chooseLimiter } from '../limits/choose.ts'
import { groupName } from '../limits/groups.ts'
import type { Limiter } from '../limits/limiter.ts'
import { findMarked, findSandboxds, killAll, ProcessScanner } from '../processes.ts'
import { ComputeError, type Sandbox } from '../sandbox.ts'
import type { Workspace } from '../workspace.ts'
import { DiskWatch } from './disk-watch.ts'
import { LaunchRefused, type LocalDriverOptions, type LocalIsolation } from './isolation.ts'
import { findOccupants } from './mount-tables.ts'
import { pinRoot } from './pinned.ts'
import { workspaceGone } from './resolve-path.ts'
import { findLeft, type LeftSandboxes, RunningSandboxes } from './running.ts'
import type { LocalSandbox, SandboxStart } from './sandbox.ts'
import { ServerDirectories, serverMarkerOf } from './server-directories.ts'
import { removeTreeEntry } from './tree.ts'

/** What `Enforced.network` says. */
const NETWORK_NAMES = {
  redirected: 'own, outbound filtered',
  proxy: 'own, outbound by proxy',
  shared: 'shared with this machine',
} as const

/** What a server has, as seen at the first. */
interface SeenSandbox {
  /** How connections leave the network; `shared` if it is the machine's. */
  leaves: keyof typeof NETWORK_NAMES
  /** Whether its processes have a user of the kernel's own. */
  ownUser: boolean
}

const seenAt = ({ leaves, hasOwnUser }: LocalSandbox): SeenSandbox => ({
  leaves: leaves ?? 'shared',
  ownUser: hasOwnUser,
})

/** Servers without namespaces. */
const AS_ON_THE_MACHINE: SeenSandbox = { leaves: 'shared', ownUser: false }

/** Limits of the server that is started to see how connections leave it, and what it may use. */
const TRIAL_LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 }

/** Runs servers as processes of this machine; a `LocalIsolation` decides how they are isolated. */
export class LocalDriver implements ComputeDriver {
  readonly #isolation: LocalIsolation
  readonly #options: LocalDriverOptions
  readonly #directories: ServerDirectories
  readonly #running: RunningSandboxes
  readonly #scanner = new ProcessScanner()
  readonly #senders = once(async () => new (await import('./sender.ts')).SenderSearch())
  readonly #relay = once(async () => {
    const { OutboundRelay, relayWorkerUrl } = await import('./network/outbound/relay.ts')
    const { logger } = this.#options
    // Of this process, which may start another program as sandboxd.
    const { compiled } = selfCommand()
    return new OutboundRelay({ logger, worker: relayWorkerUrl(compiled) })
  })
  readonly #networks = once(async () => {
    const { NetworkLoader } = await import('./network/network-setup.ts')
    return new NetworkLoader(this.#options.projectPorts, this.#options.path)
  })
  readonly #maxOpenFiles = once(processes.maxOpenFiles)
  #limiter: Promise<Limiter> | null = null
  #seen: Promise<SeenSandbox> | null = null

  constructor(isolation: LocalIsolation, options: LocalDriverOptions) {
    this.#isolation = isolation
    this.#options = options
    this.#directories = new ServerDirectories(options.dataDir)
    this.#running = new RunningSandboxes(options.dataDir)
  }

  get name(): Isolation {
    return this.#isolation.name
  }

  readonly keepsFilesHere = true

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
          const { leaves, ownUser } = await this.#see()
          return {
            isolation: kindOf(this.name).isolation,
            ...enforced,
            // The kernel counts the processes of a user of its own.
            ...(ownUser && enforced.processes === 'watchdog' ? { processes: 'rlimit' as const } : {}),
            disk: 'watchdog',
            network: NETWORK_NAMES[leaves],
            user: ownUser ? 'own' : `shared with ${process.getuid?.() === 0 ? 'root' : 'berth'}`,
          }
        },
        ...(notes === undefined || notes.length === 0 ? {} : { notes }),
      }
    } catch (error) {
      const reason = `Its probe failed: ${messageOf(error)}`
      return { available: false, reason, remedy: 'Run `berth doctor` and look at the log.' }
    }
  }

  create(serverId: string): Promise<ServerHandle> {
    return this.#directories.create(serverId)
  }

  keep(handle: ServerHandle): void {
    this.#directories.keep(handle)
  }

  async start(serverId: string, handle: ServerHandle, limits: Limits): Promise<Sandbox> {
    const { logger } = this.#options
    checkOpenFiles(this.#maxOpenFiles())
    try {
      const sandbox = await this.#launch(serverId, handle, limits)
      const usage = (): Promise<number> => this.#usage(handle)
      const reclaim = (): Promise<void> => this.emptyCaches(handle)
      const watch = new DiskWatch({ limit: limits.storageBytes, usage, reclaim, sandbox, logger })
      watch.start()
      sandbox.watchStorage(watch)
      return sandbox
    } catch (error) {
      if (error instanceof ComputeError) throw error
      throw new ComputeError(`The server does not start: ${messageOf(error)}`, { cause: error })
    }
  }

  placement(): Placement {
    return { ...NO_WISH, node: null, cause: null }
  }

  async checkFiles(handle: ServerHandle): Promise<void> {
    const workspace = this.#directories.workspace(handle)
    if (!lstatSync(workspace, { throwIfNoEntry: false })?.isDirectory()) throw workspaceGone(workspace)
  }

  workspace(handle: ServerHandle): Workspace {
    const { workspace } = this.#options
    return workspace(this.#directories.workspace(handle), this.#directories.caches(handle))
  }

  async emptyCaches(handle: ServerHandle): Promise<void> {
    const path = this.#directories.makeCaches(handle)
    using pinned = pinRoot(path, holdsInodes, false)
    // What programs put there meanwhile may stay.
    for (const name of readdirSync(path)) await removeTreeEntry(pinned, name).catch(() => {})
    await this.#options.prepareCaches(this.#directories.name(handle), this.#options.workspace(path))
  }

  takeStock(servers: readonly ServerHandle[], deleted: readonly ServerHandle[]): Remains {
    const { ids, kept, remove } = this.#directories.takeStock(servers, deleted)
    const left = this.#running.left()
    return { kept, end: () => this.#endProcesses(ids, left), remove }
  }

  /**
   * Ends the processes that an earlier berth left running.
   *
   * @param ids the servers that have a record or a directory
   * @param left the sandboxes that it noted; null if it noted none
   */
  async #endProcesses(ids: readonly string[], left: LeftSandboxes | null): Promise<void> {
    const names = new Set([...ids, ...(left?.keys() ?? [])])
    if (names.size === 0) return
    const dataMarker = this.#directories.dataMarker()
    const searched = new Set(
      left === null ? names : [...left.keys()].filter((name) => left.get(name) === null),
    )
    if (searched.size > 0) await this.#search(searched)
    for (const [name, traces] of left ?? []) {
      if (traces !== null) {
        await killAll(findLeft(traces, serverMarkerOf(dataMarker, name), join(groupName(dataMarker), name)))
      }
      this.#running.end(name)
    }
    const limiter = await this.#chosenLimiter()
    await limiter.sweep([...names])
  }

  /** Ends what an earlier berth left of servers, among all processes of the machine. */
  async #search(names: ReadonlySet<string>): Promise<void> {
    const dataMarker = this.#directories.dataMarker()
    const markers = new Set([...names].map((name) => serverMarkerOf(dataMarker, name)))
    const find = () => [...new Set([...findMarked(markers), ...this.#occupantsOf(names)])]
    if (find().length > 0) {
      // What shows that a process without its marker belongs to a server is that its sandboxd has adopted it, so that goes
      // last. Twice: a look can miss a process whose parent ends just then.
      const findCommands = () => {
        const sandboxds = new Set(findSandboxds())
        return find().filter((pid) => !sandboxds.has(pid))
      }
      await killAll(findCommands)
      await killAll(findCommands)
      await killAll(find)
    }
  }

  #occupantsOf(serverIds: ReadonlySet<string>): number[] {
    const occupants = findOccupants(this.#options.dataDir)
    return occupants.filter(({ serverId }) => serverIds.has(serverId)).map(({ pid }) => pid)
  }

  destroy(handle: ServerHandle): Promise<void> {
    return this.#directories.destroy(handle)
  }

  async senderOf(connection: Connection): Promise<Sender> {
    const senders = await this.#senders()
    return senders.senderOf(connection)
  }

  /**
   * Returns the bytes of everything that the server can write: its workspace with its caches, and its temporary directory
   * if that is on disk.
   */
  async #usage(handle: ServerHandle): Promise<number> {
    const temporary = join(this.#directories.dir(handle), 'tmp')
    const inTemporary = await this.#options
      .workspace(temporary)
      .usage()
      .catch((error: unknown) => {
        if (error instanceof ComputeError && isGone(error.cause)) return 0
        throw error
      })
    return (await this.workspace(handle).usage()) + inTemporary
  }

  /** Returns what servers have here: what a server has that was started, or one that is started for it. */
  #see(): Promise<SeenSandbox> {
    if (this.#seen !== null) return this.#seen
    const seeing = this.#isolation.namespaces ? this.#trySandbox() : Promise.resolve(AS_ON_THE_MACHINE)
    this.#seen = seeing
    // Another trial may succeed.
    seeing.catch(() => {
      if (this.#seen === seeing) this.#seen = null
    })
    return seeing
  }

  async #trySandbox(): Promise<SeenSandbox> {
    // A name of its own: what ends the trial of a killed berth does not end this one.
    const id = `srv_trial${base62(systemRandom, 8)}`
    const handle = await this.create(id)
    try {
      const sandbox = await this.#launch(id, handle, TRIAL_LIMITS)
      await sandbox.stop()
      return seenAt(sandbox)
    } finally {
      await this.destroy(handle)
    }
  }

  async #launch(id: string, handle: ServerHandle, limits: Limits): Promise<LocalSandbox> {
    const dir = this.#directories.dir(handle)
    const workspace = this.#directories.workspace(handle)
    await this.checkFiles(handle)
    const marker = this.#directories.serverMarker(handle)
    const groups = (await this.#chosenLimiter()).shownGroups(id)
    const caches = this.#directories.makeCaches(handle)
    await this.#options.prepareCaches(id, this.#options.workspace(caches))
    const launch = await this.#isolation.launch({ id, dir, workspace, caches, marker, limits, groups })
    const start = { id, marker, limits }
    const { fallback = null } = launch.user ?? {}
    try {
      return await this.#startSandbox({ ...start, launch })
    } catch (error) {
      if (fallback === null || !(error instanceof LaunchRefused)) throw error
      const sandbox = await this.#startSandbox({ ...start, launch: await fallback.launch() })
      fallback.keep(messageOf(error))
      return sandbox
    }
  }

  async #startSandbox(
    start: Pick<SandboxStart, 'id' | 'marker' | 'limits' | 'launch'>,
  ): Promise<LocalSandbox> {
    const { id, limits, launch } = start
    const hasNetwork = launch.descriptors === 'sockets'
    const [limiter, networks, relay, { LocalSandbox }] = await Promise.all([
      this.#chosenLimiter(),
      hasNetwork ? this.#networks() : null,
      hasNetwork ? this.#relay() : null,
      import('./sandbox.ts'),
    ])
    relay?.warmUp()
    const group = limiter.openGroup(id, limits, launch.user !== undefined)
    try {
      const sandbox = await LocalSandbox.start({
        ...start,
        options: this.#options,
        relay,
        group,
        running: this.#running,
        isolation: this.#isolation,
        scanner: this.#scanner,
        memoryEnforcedBy: limiter.enforced.memory,
        networks,
      })
      this.#reportOutbound(sandbox)
      return sandbox
    } catch (error) {
      await group.close()
      launch.user?.release()
      throw error
    }
  }

  /** Logs, once, that programs of servers find no way out by themselves. */
  #reportOutbound(sandbox: LocalSandbox): void {
    const isFirst = this.#seen === null
    this.#seen ??= Promise.resolve(seenAt(sandbox))
    const { unredirected } = sandbox
    if (!isFirst || unredirected === null) return
    this.#options.logger.warn(
      `Servers reach the outside by a proxy, which some programs do not use: ${unredirected} Install nftables (nft) and util-linux (nsenter); the kernel needs nft_redir.`,
    )
  }

  /** Chooses the limiter, and removes what killed berths left of theirs. */
  async #chooseLimiter(): Promise<Limiter> {
    const limiter = await chooseLimiter(this.#directories.dataMarker(), this.#isolation.namespaces)
    await limiter.sweep([])
    return limiter
  }

  #chosenLimiter(): Promise<Limiter> {
    this.#limiter ??= this.#chooseLimiter()
    return this.#limiter
  }
}

/** The share of this process's descriptors that servers leave to requests, connections and files. */
const SHARE_FOR_OTHERS = 1 / 8

/**
 * Refuses one more server if its descriptors would take those that everything else needs.
 *
 * @param limit the outcome of `maxOpenFiles`
 * @throws ComputeError
 */
function checkOpenFiles(limit: number | null): void {
  if (limit === null || processes.openFiles() < limit * (1 - SHARE_FOR_OTHERS)) return
  throw new ComputeError(
    `berth has nearly as many files open as the system allows, ${limit}, and each running server takes some. Stop servers, or start berth again after "ulimit -n" with a greater number (with systemd: LimitNOFILE).`,
  )
}
