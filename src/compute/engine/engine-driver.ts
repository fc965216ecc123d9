import { join } from 'node:path'
import type { Connection } from '../../runtime/connection.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { once } from '../../runtime/once.ts'
import { STAGED } from '../../storage/state.ts'
import { holdsInodes } from '../../system/files.ts'
import {
  type ComputeDriver,
  type FileLoss,
  type Limits,
  NO_WISH,
  type Placement,
  type Probe,
  type Remains,
  type Sender,
  type ServerHandle,
  type ServerWish,
} from '../driver.ts'
import { baseEnvironment } from '../local/isolation.ts'
import type { OutboundProxy, OutboundProxyOptions } from '../local/network/outbound/proxy.ts'
import { ServerDirectories } from '../local/server-directories.ts'
import { StagingArea } from '../local/staging.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import { RemoteWorkspace } from '../remote/workspace.ts'
import { ComputeError, type OutboundSettings, type Sandbox, type SandboxPaths } from '../sandbox.ts'
import type { Workspace } from '../workspace.ts'
import {
  CACHES_PATH,
  type Engine,
  type EngineProbe,
  EXECUTABLE_PATH,
  IMAGE_PATH,
  SERVER_USER,
  StorageLost,
  TOOLS_PATH,
  WORKSPACE_PATH,
} from './engine.ts'
import { EngineServer, type ServerContext } from './engine-server.ts'
import { type EngineHandle, engineHandle, isEngineHandle, newName, newUser } from './names.ts'
import { EngineNotes } from './owner.ts'

/** The size of a storage whose server's limits are not known yet. */
const UNKNOWN_STORAGE_BYTES = 10 * 2 ** 30

/** Ends of instances that are kept, of those that nobody has asked for. @bound system */
const MOST_ENDS = 1_000

/** The options of `EngineDriver`. */
export interface EngineDriverOptions
  extends Pick<
    ServerContext,
    'engine' | 'ephemeral' | 'image' | 'leaseMs' | 'logger' | 'prepareCaches' | 'provide'
  > {
  /** What a person calls the engine, with its address. */
  name: string
  /** Absolute path of the data directory. */
  dataDir: string
  /** Returns the URL at which commands reach berth's API; null if there is none. */
  baseUrl(network: 'own' | 'shared'): string | null
  /** Returns further variables of every command of a server. */
  environment(serverId: string, paths: SandboxPaths): Readonly<Record<string, string>>
  /** What servers reach whose network leads nowhere, until something else is set for them; the internet by default. */
  outbound?: OutboundSettings
}

/**
 * Runs servers on an engine, each in an instance of its own whose process 1 is sandboxd. Files are reached through that,
 * also those of a server that is stopped: see `EngineServer`.
 */
export class EngineDriver implements ComputeDriver {
  readonly keepsFilesHere = false
  readonly #options: EngineDriverOptions
  readonly #notes: EngineNotes
  readonly #context: ServerContext
  readonly #servers = new Map<string, EngineServer>()
  /** Names of the instances that this process has begun, until they are removed. */
  readonly #begun = new Set<string>()
  /** Receive the ends of instances that run, by id. */
  readonly #awaited = new Map<string, (reason: string) => void>()
  /** Why instances have ended of which nobody has asked, by id. */
  readonly #ends = new Map<string, string>()
  #watch: Disposable | null = null
  readonly #commons = once(async () => {
    const { RelayCommons } = await import('../local/network/outbound/relayed-server.ts')
    return new RelayCommons()
  })

  constructor(options: EngineDriverOptions) {
    this.#options = options
    const notes = new EngineNotes(options.dataDir)
    this.#notes = notes
    this.#context = {
      ...options,
      get owner() {
        return notes.owner
      },
      endOf: (id) => this.#endOf(id),
      environment: (serverId) => this.#environment(serverId),
      files: (sandbox, area) =>
        new RemoteWorkspace({ connect: async () => sandbox, staging: this.#staging, area }),
      wayOut: (serverId, way) => this.#wayOut(serverId, way),
      begin: (name) => {
        this.#begun.add(name)
        this.#watchEnds()
      },
      removed: ({ id, name }) => {
        this.#begun.delete(name)
        this.#awaited.delete(id)
      },
      check: (handle) => this.#check(handle),
    }
  }

  /** The id of the data directory on the engine. */
  get owner(): string {
    return this.#notes.owner
  }

  get name(): Engine['name'] {
    return this.#options.engine.name
  }

  async probe(): Promise<Probe> {
    const { engine, image } = this.#options
    let probe: EngineProbe
    try {
      probe = await engine.probe()
    } catch (error) {
      const [reason = '', remedy = 'Look at the log of the engine.'] =
        messageOf(error).split(/(?<=\.) (?=[A-Z])(.*)/s)
      return { available: false, reason, remedy }
    }
    const isMissing = (await engine.hasImage(image).catch(() => null)) === false
    return {
      available: true,
      network: 'own',
      enforced: async () => ({
        isolation: engine.name === 'docker' ? 'container' : 'pod',
        ...probe.enforced,
        disk: 'watchdog',
        network: probe.network,
        user: 'own',
      }),
      notes: [
        ...probe.notes,
        ...(isMissing ? [`The engine has no image ${image}: make it with "berth engine prepare".`] : []),
      ],
    }
  }

  async create(
    serverId: string,
    { image, root }: ServerWish = NO_WISH,
    storageBytes = UNKNOWN_STORAGE_BYTES,
  ): Promise<EngineHandle> {
    const { engine, ephemeral } = this.#options
    const { owner } = this.#notes
    const name = newName(owner, serverId)
    this.#notes.begin(name)
    this.#watchEnds()
    try {
      const id = await engine.identify()
      await engine.createStorage({
        name,
        labels: { owner, server: serverId, ephemeral },
        bytes: storageBytes,
        image: image ?? this.#options.image,
      })
      return {
        kind: 'engine',
        compute: engine.name,
        engine: id,
        storage: name,
        server: serverId,
        image,
        root,
        user: root ? 0 : engine.hasOwnUsers ? newUser() : SERVER_USER,
      }
    } catch (error) {
      await engine.removeStorage(name).then(
        () => this.#notes.end(name),
        () => {},
      )
      throw error
    }
  }

  keep(handle: ServerHandle): void {
    this.#notes.end(engineHandle(handle, this.name).storage)
  }

  async start(_serverId: string, handle: ServerHandle, limits: Limits): Promise<Sandbox> {
    return this.#server(handle).start(limits)
  }

  isOutdated(handle: ServerHandle): Promise<boolean> {
    return this.#server(handle).isOutdated()
  }

  workspace(handle: ServerHandle): Workspace {
    const server = this.#server(handle)
    return new RemoteWorkspace({ connect: () => server.connect(), staging: this.#staging })
  }

  placement(handle: ServerHandle): Placement {
    const { image, root } = engineHandle(handle, this.name)
    return { image: image ?? this.#options.image, root, ...this.#server(handle).where }
  }

  async lossOf(handle: ServerHandle): Promise<FileLoss | null> {
    const ours = engineHandle(handle, this.name)
    const { engine, name } = this.#options
    if ((await engine.identify()) !== ours.engine)
      return { cause: `They are on another engine than ${name}.`, isSeen: false, left: [] }
    const cause = await this.#causeOfLoss(ours)
    return cause === null ? null : { cause, isSeen: true, left: await this.#leftOf(ours) }
  }

  async #causeOfLoss(handle: EngineHandle): Promise<string | null> {
    const { engine, name } = this.#options
    const { storage, server } = handle
    if (!(await engine.hasStorage(storage))) return `${name} has no volume ${storage} any more.`
    const lost = await engine.lostNode?.({ owner: this.#notes.owner, server }, storage)
    if (typeof lost === 'string') return lost
    try {
      await this.workspace(handle).stat('.')
      return null
    } catch (error) {
      if (error instanceof StorageLost) return error.reason
      throw error
    }
  }

  /** Lists what the engine has of a server. */
  async #leftOf({ storage, server }: EngineHandle): Promise<FileLoss['left']> {
    const { engine } = this.#options
    const { instances, storages } = await engine.list(this.#notes.owner)
    return [
      ...instances
        .filter(({ labels }) => labels.server === server)
        .map(({ name }) => ({ name, remedy: engine.removalOf('instance', name) })),
      ...storages
        .filter(({ name }) => name === storage)
        .map(({ name }) => ({ name, remedy: engine.removalOf('storage', name) })),
    ]
  }

  async emptyCaches(handle: ServerHandle): Promise<void> {
    await this.#server(handle).emptyCaches()
  }

  filesAreOpen(handle: ServerHandle): boolean {
    return isEngineHandle(handle) && this.#server(handle).isRunning
  }

  async checkFiles(handle: ServerHandle): Promise<void> {
    // An engine removes no storage that is in use.
    if (this.#server(handle).isRunning) return
    await this.#check(engineHandle(handle, this.name))
  }

  takeStock(servers: readonly ServerHandle[], deleted: readonly ServerHandle[]): Remains {
    const owned = new Set(servers.flatMap((handle) => (isEngineHandle(handle) ? [handle.storage] : [])))
    const doomed = new Set(deleted.flatMap((handle) => (isEngineHandle(handle) ? [handle.storage] : [])))
    const begun = [...this.#notes.begun]
    const blank = begun.filter((storage) => !owned.has(storage) && !doomed.has(storage))
    const hadOwner = this.#notes.hasOwner
    const { engine, logger } = this.#options
    let unnamed = 0
    return {
      kept: [],
      end: async () => {
        if (!hadOwner) return
        const { instances, storages } = await engine.list(this.#notes.owner)
        unnamed = storages.filter(
          ({ name }) => !owned.has(name) && !doomed.has(name) && !begun.includes(name),
        ).length
        await Promise.all(
          instances.filter(({ name }) => !this.#begun.has(name)).map((instance) => engine.remove(instance)),
        )
      },
      remove: async () => {
        if (unnamed > 0)
          logger.warn('volumes that the database does not name are kept: berth doctor --leaks', { unnamed })
        await new StagingArea(this.#staging, holdsInodes).sweep()
        for (const storage of blank) {
          await engine.removeStorage(storage)
          this.#notes.end(storage)
        }
        for (const storage of begun) if (owned.has(storage)) this.#notes.end(storage)
      },
    }
  }

  async stored(): Promise<string[]> {
    if (!this.#notes.hasOwner) return []
    const { begun, owner } = this.#notes
    const { storages } = await this.#options.engine.list(owner)
    return storages.flatMap(({ name, labels }) => (begun.has(name) ? [] : [labels.server]))
  }

  async destroy(handle: ServerHandle): Promise<void> {
    // Those of a server that was moved here: whatever runs servers, the data directory is this one.
    if (handle.kind === 'local') return new ServerDirectories(this.#options.dataDir).destroy(handle)
    const ours = engineHandle(handle, this.name)
    const { storage } = ours
    await this.#checkEngine(ours)
    await this.#server(handle).remove()
    this.#servers.delete(storage)
    this.#notes.end(storage)
  }

  /** Servers have networks of their own, from which nothing reaches the loopback of this machine, nor anything if they lead nowhere. */
  async senderOf({ remoteAddress }: Connection): Promise<Sender> {
    const { leadsOutside, outsideOf } = this.#options.engine
    // That policies of a cluster deny all is what a person says, and not seen of each server.
    if (!leadsOutside && outsideOf === undefined) return 'elsewhere'
    const isLoopback =
      remoteAddress === '::1' || remoteAddress.startsWith('127.') || remoteAddress.startsWith('::ffff:127.')
    return isLoopback ? 'elsewhere' : 'unknown'
  }

  async close(): Promise<void> {
    const { engine, ephemeral, logger } = this.#options
    try {
      await Promise.all([...this.#servers.values()].map((server) => server.sleep()))
      if (!ephemeral || !this.#notes.hasOwner) return
      const { storages } = await engine.list(this.#notes.owner)
      await Promise.all(storages.map(({ name }) => engine.removeStorage(name)))
    } catch (error) {
      logger.warn('what servers had on the engine could not be removed: berth doctor --leaks', { error })
    } finally {
      this.#watch?.[Symbol.dispose]()
      this.#watch = null
    }
  }

  get #staging(): string {
    return join(this.#options.dataDir, STAGED)
  }

  #server(handle: ServerHandle): EngineServer {
    const ours = engineHandle(handle, this.name)
    const known = this.#servers.get(ours.storage)
    if (known !== undefined) return known
    const server = new EngineServer(ours, this.#context)
    this.#servers.set(ours.storage, server)
    return server
  }

  /** The engine would make a new volume in the place of one that it does not have. */
  async #check(handle: EngineHandle): Promise<void> {
    await this.#checkEngine(handle)
    const { storage, server } = handle
    if (await this.#options.engine.hasStorage(storage)) return
    throw new ComputeError(
      `The server's files are gone: ${this.#options.name} has no volume ${storage}. Someone has removed it; delete the server, restore a snapshot, or give it an empty one: berth servers recover ${server}.`,
    )
  }

  async #checkEngine({ server, engine: id }: EngineHandle): Promise<void> {
    const { engine, name } = this.#options
    if ((await engine.identify()) === id) return
    throw new ComputeError(
      `The server's files are on another engine than ${name}, which is a different one from when the server was created. Start that engine again, or name it with --engine. If it is gone for good: berth servers recover ${server} --gone.`,
    )
  }

  async #wayOut(
    serverId: string,
    way: Pick<OutboundProxyOptions, 'socketsOfBerth' | 'enforced'>,
  ): Promise<OutboundProxy | null> {
    const { engine, outbound = { mode: 'public', hosts: [] }, logger } = this.#options
    if (engine.leadsOutside) return null
    const { OutboundProxy } = await import('../local/network/outbound/proxy.ts')
    return new OutboundProxy({
      ...{ ...way, serverId, logger, settings: outbound },
      commons: await this.#commons(),
    })
  }

  #environment(serverId: string): Record<string, string> {
    const { baseUrl, environment } = this.#options
    const tools = new ToolsDirectory(TOOLS_PATH, EXECUTABLE_PATH)
    const url = baseUrl('own')
    return {
      ...baseEnvironment(WORKSPACE_PATH, 'berth', tools.extend(IMAGE_PATH, WORKSPACE_PATH), '/tmp'),
      ...environment(serverId, { tools: TOOLS_PATH, home: WORKSPACE_PATH, caches: CACHES_PATH }),
      ...(url === null ? {} : { BERTH_BASE_URL: url }),
    }
  }

  #watchEnds(): void {
    this.#watch ??= this.#options.engine.watch(this.#notes.owner, (id, reason) => this.#noteEnd(id, reason))
  }

  /** Resolves to why an instance has ended, which may have been reported before. */
  #endOf(id: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const reason = this.#ends.get(id)
    if (reason === undefined) this.#awaited.set(id, resolve)
    else resolve(reason)
    return promise
  }

  #noteEnd(id: string, reason: string): void {
    const resolve = this.#awaited.get(id)
    if (resolve !== undefined) {
      resolve(reason)
      return
    }
    this.#ends.set(id, reason)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > MOST_ENDS && oldest !== undefined) this.#ends.delete(oldest)
  }
}
