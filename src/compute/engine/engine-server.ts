import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { systemRandom } from '../../runtime/random.ts'
import { within } from '../../runtime/wait.ts'
import type { Limits } from '../driver.ts'
import { DiskWatch } from '../local/disk-watch.ts'
import { SANDBOXD_ENVIRONMENT } from '../local/isolation.ts'
import type { ForwardTarget } from '../local/network/forward.ts'
import type { OutboundProxy, OutboundProxyOptions } from '../local/network/outbound/proxy.ts'
import type { AcceptAtPort } from '../local/network/project-ports.ts'
import { OUTBOUND_PORT, PROXY_ENVIRONMENT } from '../local/network/rules.ts'
import type { ProvidedNetwork } from '../local/network/server-network.ts'
import { serverMarkerOf } from '../local/server-directories.ts'
import { LISTEN, STDIO, sandboxdArguments } from '../processes.ts'
import { RemoteSandbox } from '../remote/sandbox.ts'
import { ComputeError } from '../sandbox.ts'
import { type FileArea, UNCONFINED } from '../sandboxd/protocol.ts'
import { KEY_BYTES } from '../sandboxd/resumable.ts'
import type { FrameTransport } from '../sandboxd/transport.ts'
import type { Workspace } from '../workspace.ts'
import {
  CACHES_PATH,
  type Engine,
  type EngineInstance,
  EXECUTABLE_PATH,
  IMAGE_PATH,
  LISTEN_PATH,
  SANDBOXD_SHARE,
  SERVER_USER,
  TOOLS_PATH,
  WORKSPACE_PATH,
} from './engine.ts'
import { type EngineHandle, newName } from './names.ts'

/** Milliseconds that an instance stays which runs for files alone, since its last use. */
const FILES_MS = 60_000

/** Milliseconds without berth after which a server ends that is reached over carriers, where nobody sets another time. */
const LEASE_MS = 60_000

/** Milliseconds in which the engine says why an instance has ended. */
const WHY_MS = 1_000

/** Limits of an instance that runs for the files of a server whose own are not known yet: nobody's program runs in it. */
const FILES_LIMITS: Limits = {
  cpus: 1,
  memoryBytes: 2 ** 28,
  processes: 100,
  storageBytes: Number.MAX_SAFE_INTEGER,
}

/** Milliseconds that a start waits for what is being read or written through an instance that runs for files alone. */
const UNUSED_MS = 10_000

/** Resolves when no call is under way, or after a while. */
async function untilUnused(sandbox: RemoteSandbox): Promise<void> {
  const latest = performance.now() + UNUSED_MS
  while (sandbox.isCalled && performance.now() < latest) await Bun.sleep(5)
}

/** What all servers of a driver share. */
export interface ServerContext {
  readonly engine: Engine
  readonly owner: string
  /** Whether the data directory is removed when berth ends. */
  readonly ephemeral: boolean
  /** Reference of the image of servers for which no other is chosen. */
  readonly image: string
  readonly logger: Logger
  /** Milliseconds without berth after which a server ends that is reached over carriers; null for 60,000. */
  readonly leaseMs: number | null
  /** Resolves when an instance has ended, to why. */
  endOf(instanceId: string): Promise<string>
  /** Returns the environment of every command. */
  environment(serverId: string): Readonly<Record<string, string>>
  /** Returns the files of a server whose sandbox runs. */
  files(sandbox: RemoteSandbox, area: FileArea): Workspace
  /** Prepares a server's caches before its first command. */
  prepareCaches(serverId: string, caches: Workspace): Promise<void>
  /** Opens what berth provides inside a server's own network, before its first command. */
  provide(serverId: string, network: ProvidedNetwork): void | Promise<void>
  /**
   * Makes the way out of a server; null if the network of servers leads outside by itself.
   *
   * @param way `socketsOfBerth`: filled before the first command
   */
  wayOut(
    serverId: string,
    way: Pick<OutboundProxyOptions, 'socketsOfBerth' | 'enforced'>,
  ): Promise<OutboundProxy | null>
  /** Notes an instance of this process before it is made. */
  begin(name: string): void
  /** Notes that an instance is gone. */
  removed(instance: EngineInstance): void
  /** Throws `ComputeError` if the storage is not on this engine. */
  check(handle: EngineHandle): Promise<void>
}

/** An instance that runs. */
interface Running {
  readonly sandbox: RemoteSandbox
  readonly outbound: OutboundProxy | null
  /** The unix sockets of berth that it is given, by port. */
  readonly socketsOfBerth: Record<number, string>
  readonly limits: Limits
  readonly transport: FrameTransport
  readonly instance: EngineInstance
  /** Whether it runs for files alone. */
  forFiles: boolean
  timer: Timer | null
}

/**
 * One server's storage, and the instance that runs on it: at most one at a time, for the server, or for the files of one
 * that is stopped. The latter ends by itself after a minute without use; a start takes it over.
 */
export class EngineServer {
  readonly #handle: EngineHandle
  readonly #context: ServerContext
  readonly #turns = new KeyedMutex()
  #running: Running | null = null
  /** Those of its last start. */
  #limits: Limits | null = null
  #isRemoved = false
  /** An instance that could not be removed, since the engine was away: no other may run on its storage. */
  #left: EngineInstance | null = null

  constructor(handle: EngineHandle, context: ServerContext) {
    this.#handle = handle
    this.#context = context
  }

  /** The node of the server that runs, null if the engine names none; and why it cannot be reached at present, a sentence. */
  get where(): { node: string | null; cause: string | null } {
    const { instance, transport } = this.#running ?? {}
    return { node: instance?.node ?? null, cause: transport?.interruption ?? null }
  }

  /** Whether an instance runs on the storage. */
  get isRunning(): boolean {
    return this.#running !== null
  }

  /** Reports whether the image has changed since the instance was started that runs. Never throws. */
  async isOutdated(): Promise<boolean> {
    const { engine, logger } = this.#context
    if (this.#running === null) return false
    try {
      return (await engine.hasChanged?.(this.#image, this.#running.instance)) ?? false
    } catch (error) {
      logger.debug('the image of a server is unknown', { serverId: this.#handle.server, error })
      return false
    }
  }

  /** Starts the server. Throws `ComputeError`. */
  start(limits: Limits): Promise<RemoteSandbox> {
    return this.#turn(async () => {
      this.#limits = limits
      const running = await this.#usable()
      if (running !== null && !running.forFiles) throw new ComputeError('The server runs already.')
      if (running !== null && Bun.deepEquals(running.limits, limits) && !(await this.isOutdated())) {
        this.#keep(running)
        running.forFiles = false
        await this.#prepare(running)
        return running.sandbox
      }
      if (running !== null) await untilUnused(running.sandbox)
      await running?.sandbox.stop()
      const started = await this.#run(limits, false)
      await this.#prepare(started)
      return started.sandbox
    })
  }

  /** Returns a sandbox by which the files are reached, which is started if none runs. Throws `ComputeError`. */
  async connect(): Promise<RemoteSandbox> {
    const now = this.#running
    if (now !== null && !now.sandbox.ending) return this.#use(now)
    return this.#turn(async () =>
      this.#use((await this.#usable()) ?? (await this.#run(this.#limits ?? FILES_LIMITS, true))),
    )
  }

  /** Removes what is in the caches. Throws `ComputeError`. */
  async emptyCaches(): Promise<void> {
    await this.#emptyCaches(await this.connect())
  }

  /** Ends what runs. Never throws. */
  async sleep(): Promise<void> {
    await this.#running?.sandbox.stop()
  }

  /** Ends what runs, and removes the storage. Throws `ComputeError`. */
  remove(): Promise<void> {
    return this.#turn(async () => {
      this.#isRemoved = true
      await this.#running?.sandbox.stop()
      await this.#removeLeft()
      await this.#context.engine.removeStorage(this.#handle.storage)
    })
  }

  async #emptyCaches(sandbox: RemoteSandbox): Promise<void> {
    const caches = this.#context.files(sandbox, 'caches')
    // What programs put there meanwhile may stay.
    for (const { name } of await caches.entries('')) await caches.remove(name).catch(() => {})
    await this.#prepareCaches(sandbox)
  }

  /** Prepares what a command may need. */
  async #prepare({ sandbox, outbound, socketsOfBerth }: Running): Promise<void> {
    const { provide, logger } = this.#context
    const { server } = this.#handle
    const forward = (port: number, target: ForwardTarget | AcceptAtPort): void =>
      sandbox.forward(port, target, (error) =>
        logger.warn('a port of berth is not reachable inside a server', { serverId: server, port, error }),
      )
    if (outbound !== null) forward(OUTBOUND_PORT, (_, socket) => outbound.accept(socket))
    await provide(server, {
      forward(port, target) {
        if ('unix' in target) socketsOfBerth[port] = target.unix
        forward(port, target)
      },
      acceptAtProjectPorts: (accept, ports) => sandbox.acceptAtProjectPorts(accept, ports),
    })
    await this.#prepareCaches(sandbox)
  }

  async #prepareCaches(sandbox: RemoteSandbox): Promise<void> {
    await this.#context.prepareCaches(this.#handle.server, this.#context.files(sandbox, 'caches'))
  }

  #turn<T>(act: () => Promise<T>): Promise<T> {
    return this.#turns.run('', act)
  }

  /** Returns what runs; waits for the end of what is ending. */
  async #usable(): Promise<Running | null> {
    const running = this.#running
    if (running === null || !running.sandbox.ending) return running
    await running.sandbox.exited
    return null
  }

  #use(running: Running): RemoteSandbox {
    if (running.forFiles) this.#expire(running)
    return running.sandbox
  }

  /** Ends an instance that runs for files alone, a minute after its last use. */
  #expire(running: Running): void {
    this.#keep(running)
    running.timer = setTimeout(() => {
      if (!running.forFiles || running.sandbox.ending) return
      if (running.sandbox.isCalled) this.#expire(running)
      else void running.sandbox.stop()
    }, FILES_MS)
    running.timer.unref()
  }

  #keep(running: Running): void {
    if (running.timer !== null) clearTimeout(running.timer)
    running.timer = null
  }

  async #run(limits: Limits, forFiles: boolean): Promise<Running> {
    try {
      return await this.#launch(limits, forFiles)
    } catch (error) {
      // What says so is the engine's runtime, in the words of execve(2): the file is there, and its loader is not.
      if (!new RegExp(`${EXECUTABLE_PATH}"?: no such file or directory`).test(messageOf(error))) throw error
      throw new ComputeError(
        `The image ${this.#image} cannot run servers: berth's executable needs glibc, which Debian, Ubuntu, Fedora and their like have, and Alpine has not. Choose an image based on one of these.`,
        { cause: error },
      )
    }
  }

  get #image(): string {
    return this.#handle.image ?? this.#context.image
  }

  async #launch(limits: Limits, forFiles: boolean): Promise<Running> {
    const { storage, server, root, user = root ? 0 : SERVER_USER } = this.#handle
    const context = this.#context
    const { engine, owner, ephemeral, logger } = context
    if (this.#isRemoved) throw new ComputeError('The server was deleted.')
    await context.check(this.#handle)
    await this.#removeLeft()
    const name = newName(owner, server)
    const marker = serverMarkerOf(owner.slice(0, 12), server)
    context.begin(name)
    const [command = '', ...rest] = sandboxdArguments(marker)
    const instance = await engine.run({
      name,
      labels: { owner, server, ephemeral },
      image: this.#image,
      storage,
      args: [command, ...(engine.carrier === 'attach' ? [STDIO] : [LISTEN, LISTEN_PATH]), ...rest],
      env: SANDBOXD_ENVIRONMENT,
      limits,
      user,
    })
    const ended = context.endOf(instance.id)
    const transport = await this.#connect(instance)
    const socketsOfBerth: Record<number, string> = {}
    const enforced = (): Promise<boolean> => this.#isKeptIn(instance)
    const outbound = await context.wayOut(server, { socketsOfBerth, enforced })
    const sandbox = await RemoteSandbox.start({
      transport,
      keepAlive: null,
      configuration: {
        workspace: WORKSPACE_PATH,
        caches: CACHES_PATH,
        env: { ...(outbound === null ? {} : PROXY_ENVIRONMENT), ...context.environment(server) },
        inherited: {
          except: [...Object.keys(SANDBOXD_ENVIRONMENT), ...(instance.variables ?? [])],
          path: IMAGE_PATH,
        },
        marker,
        confinement: UNCONFINED,
        watch: { memoryBytes: limits.memoryBytes, processes: limits.processes },
        rlimits: {
          // The kernel does not hold root to it, and counts those of other servers where several have one user.
          ...(user === 0 || user === SERVER_USER
            ? {}
            : { processes: limits.processes + SANDBOXD_SHARE.processes }),
          ...(limits.storageBytes === FILES_LIMITS.storageBytes ? {} : { fileBytes: limits.storageBytes }),
        },
        receivesTerminals: false,
        sendsSockets: false,
      },
      tools: TOOLS_PATH,
      caches: CACHES_PATH,
      network: { network: 'own', outboundControl: outbound },
      limits,
      memoryEnforcedBy: 'cgroup',
      whyEnded: () => this.#whyEnded(ended),
      remove: () => this.#remove(instance),
    })
    const running: Running = {
      ...{ sandbox, outbound, socketsOfBerth, limits, transport, forFiles },
      instance,
      timer: null,
    }
    this.#running = running
    void sandbox.exited.then(() => {
      this.#keep(running)
      outbound?.close()
      if (this.#running === running) this.#running = null
    })
    const watch = new DiskWatch({
      limit: limits.storageBytes,
      usage: () => context.files(sandbox, 'workspace').usage(),
      reclaim: () => this.#emptyCaches(sandbox),
      sandbox,
      logger,
    })
    watch.start()
    sandbox.watchStorage(watch)
    return running
  }

  /** Reports whether the instance that runs reaches nothing outside by itself. */
  async #isKeptIn(instance: EngineInstance): Promise<boolean> {
    const addresses = this.#context.engine.outsideOf?.(instance) ?? []
    const reaches = addresses.map(
      async ({ host, port }) => this.#running?.sandbox.reaches(host, port) ?? true,
    )
    const reached = await Promise.all(reaches).catch(() => [true])
    return !reached.includes(true)
  }

  async #connect(instance: EngineInstance): Promise<FrameTransport> {
    const { engine, leaseMs } = this.#context
    try {
      if (engine.carrier === 'attach') return await engine.connect(instance)
      const { ResumableTransport } = await import('./resumable.ts')
      return new ResumableTransport({
        connect: () => engine.connect(instance),
        key: systemRandom.bytes(KEY_BYTES),
        leaseMs: leaseMs ?? LEASE_MS,
      })
    } catch (error) {
      await this.#remove(instance)
      throw error
    }
  }

  /** Removes an instance, now or before the next one runs. Never throws. */
  async #remove(instance: EngineInstance): Promise<void> {
    try {
      await this.#context.engine.remove(instance)
      this.#context.removed(instance)
    } catch (error) {
      this.#left = instance
      this.#context.logger.warn('a server has ended, and what ran it could not be removed yet', {
        ...{ serverId: this.#handle.server, instance: instance.name, error },
      })
    }
  }

  async #removeLeft(): Promise<void> {
    if (this.#left === null) return
    await this.#context.engine.remove(this.#left)
    this.#context.removed(this.#left)
    this.#left = null
  }

  /** Returns why an instance has ended that nobody stopped, as far as the engine says it. */
  async #whyEnded(ended: Promise<string>): Promise<string | null> {
    const reason = await within(WHY_MS, ended, null)
    if (reason !== null) return reason
    return this.#context.engine.probe().then(() => null, messageOf)
  }
}
