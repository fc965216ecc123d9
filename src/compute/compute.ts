/**
 * Servers. `Compute` provisions and starts them by a driver, which `drivers.ts` chooses. The driver of this machine is
 * `local/driver.ts`; `bubblewrap/`, `landlock/`, `seatbelt/` and `none/` in this room are its isolations. That of Docker
 * engines and of Kubernetes is `engine/engine-driver.ts`, with an `Engine` each in `docker/` and `kubernetes/`. In each
 * sandbox, container or pod runs sandboxd (`sandboxd/`), which starts the commands; `remote/` reaches one that is no
 * process of this machine.
 *
 * To change what a sandbox sees, begin at `local/system-files.ts` (what both show), `bubblewrap/arguments.ts` and
 * `landlock/`; which tools of the machine, at `local/machine-tools.ts`; how a command runs, at `sandboxd/`, and how it
 * is ended, at `processes.ts`; files of a workspace, at `local/workspace.ts`; how limits hold, at `limits/`; the size
 * of /tmp, which is memory under bubblewrap, at `bubblewrap/isolation.ts`; what reaches the network, at
 * `local/network/outbound/policy.ts`; the settings of a container, at `docker/container.ts`, those of a pod, at
 * `kubernetes/objects.ts`; the image of servers, at `docker/prepare-image.ts`. Other doors are `sandbox.ts` (a server that runs), `workspace.ts` (its files),
 * `tools.ts`, `processes.ts` (finds and ends processes), `remains.ts` (what a killed berth leaves), `trees.ts` and
 * `emulators/emulators.ts` (the screens of terminals).
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import type { ComputeName } from '../config/compute.ts'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import { base62, systemRandom } from '../runtime/random.ts'
import {
  type ComputeDriver,
  type Limits,
  NO_WISH,
  type Remains,
  type ServerHandle,
  type ServerWish,
} from './driver.ts'
import { ComputeError, type Sandbox } from './sandbox.ts'
import type { Workspace } from './workspace.ts'

export {
  type ComputeDriver,
  type DriverName,
  type Enforced,
  type FileLoss,
  type IsolationName,
  kindOf,
  type Limits,
  NO_WISH,
  type Placement,
  type Probe,
  type Remains,
  type Sender,
  type ServerHandle,
  type ServerWish,
} from './driver.ts'
export type { ComputeDependencies, DriverChoice, SelectedDriver, ServerProvisions } from './drivers.ts'
export { TOOLS_PATH } from './engine/engine.ts'
export { computeOf, filesElsewhere, ownImage, wishOf } from './engine/names.ts'
export type { EngineChoice, EngineFinding } from './engine/open.ts'
export type { EngineDirectory, EngineRemain, EngineRemains } from './engine/remains.ts'
export { CLUSTER_RIGHTS } from './kubernetes/rights.ts'
export type { AcceptAtPort, AcceptedConnection, AnsweringPorts } from './local/network/project-ports.ts'
export type { ProvidedNetwork } from './local/network/server-network.ts'

/** Where servers may be, as a person names it. */
export interface PlaceChoice {
  readonly compute: ComputeName
  /** The address of a Docker engine; null for the configured one. */
  readonly address: string | null
}

/** Makes a driver of another place than the one that servers run on. Throws StartupError for one that cannot be used. */
export type OpenPlace = (choice: PlaceChoice) => Promise<ComputeDriver>

/** Loads the drivers of this machine, and what selects one of them. */
export const loadDrivers = () => import('./drivers.ts')

/** Loads what makes images of servers. */
export const loadImages = () => import('./docker/prepare-image.ts')

/** Loads what finds that which ended berths have left on engines. */
export const loadEngineRemains = () => import('./engine/remains.ts')

/** Milliseconds after the start of berth in which nobody waits for spare servers, so they take no time from it. */
const FIRST_MS = 1_000

/**
 * Milliseconds between the start of a server and that of the next spare one. The first command of the new server usually
 * comes within them, and takes three times as long if it shares the processors with a start.
 */
const REFILL_MS = 15

/** A server that is being provisioned. */
export interface Provision {
  readonly id: string

  /** Makes the server's workspace, which is empty. Further calls return the same. Throws `ComputeError`. */
  create(): Promise<ServerHandle>

  /** Starts the server's sandbox, as `Compute.start` does. */
  start(): Promise<Sandbox>

  /** Ends the server's processes and removes its files. To be called if it is not created after all. */
  discard(): Promise<void>
}

/** The options of `Compute`. */
export interface ComputeOptions {
  driver: ComputeDriver
  /** How many servers start before a caller asks for them. */
  spareServers: number
  /** Returns the id of a new server. @param isKept reports whether an earlier berth has left a directory by this id */
  nextId(isKept: (id: string) => boolean): string
  logger: Logger
}

/** What a server is made with. */
interface Order {
  readonly limits: Limits
  readonly wish: ServerWish
}

/** A server that runs before it is created. */
interface Spare {
  readonly id: string
  readonly order: Order
  readonly handle: Promise<ServerHandle>
  /** Null if it did not start. */
  readonly sandbox: Promise<Sandbox | null>
}

/**
 * Provisions and starts servers, by the driver of this machine.
 *
 * It starts spare servers before a caller asks for them, since most of the time that a creation takes is that of starting
 * a sandbox. A spare server has its id, directory, limits and network, and has run no command yet. It has no record, so
 * nobody sees or pays for it.
 */
export class Compute {
  /** Finds, keeps and removes what servers have. */
  readonly driver: Omit<ComputeDriver, 'create' | 'start' | 'workspace' | 'takeStock'>
  readonly #driver: ComputeDriver
  readonly #options: ComputeOptions
  #kept: readonly string[] = []
  /** Spares start on behalf of nobody, not of the request after which they do. */
  readonly #outside = AsyncLocalStorage.snapshot()
  /** Those that can be taken, the oldest first. */
  #spares: Spare[] = []
  /** Those that work for berth itself. */
  readonly #asides = new Set<Spare>()
  /** What further ones are made with; null for none. */
  #order: Order | null = null
  /** What the last creation asked for. */
  #asked: Order | null = null
  /** How many servers start on behalf of callers. */
  #starting = 0
  #timer: Timer | null = null
  #closed = false

  constructor(options: ComputeOptions) {
    this.driver = options.driver
    this.#driver = options.driver
    this.#options = options
  }

  /** Ids of the directories that no server owned when stock was taken, and that stay. */
  get kept(): readonly string[] {
    return this.#kept
  }

  /** Lists what earlier berths left, as `takeStock` of the driver does. */
  takeStock(servers: readonly ServerHandle[], deleted: readonly ServerHandle[]): Remains {
    const remains = this.#driver.takeStock(servers, deleted)
    this.#kept = remains.kept
    return remains
  }

  /** Begins the creation of a server with these limits: of a spare one if there is any. */
  provision(limits: Limits, wish: ServerWish = NO_WISH): Provision {
    const spare = this.#take({ limits, wish })
    const id = spare?.id ?? this.#nextId()
    const create = once(() => spare?.handle ?? this.#driver.create(id, wish, limits.storageBytes))
    return {
      id,
      create,
      start: async () => this.start(id, await create(), limits, spare?.sandbox),
      discard: async () => {
        await (await spare?.sandbox)?.stop()
        await this.#driver.destroy(await create())
      },
    }
  }

  /**
   * Starts a server's sandbox; resolves when it takes commands. Throws `ComputeError`.
   *
   * @param started a sandbox of the server that was started before, and may have ended
   */
  async start(
    serverId: string,
    handle: ServerHandle,
    limits: Limits,
    started?: Promise<Sandbox | null>,
  ): Promise<Sandbox> {
    this.#starting += 1
    try {
      const ready = (await started) ?? null
      const isUsable = ready !== null && !ready.ending && !(await this.#driver.isOutdated?.(handle))
      if (!isUsable) await ready?.stop()
      const sandbox = isUsable ? ready : await this.#driver.start(serverId, handle, limits)
      this.#refillIn(REFILL_MS)
      return sandbox
    } finally {
      this.#starting -= 1
    }
  }

  /**
   * Runs something in a sandbox that belongs to no server, and removes it with its files. `close` ends it early.
   *
   * @returns what `use` returns; null if there is no sandbox
   */
  async aside<Result>(limits: Limits, use: (sandbox: Sandbox) => Promise<Result>): Promise<Result | null> {
    if (this.#closed) return null
    // A name of its own: the ids of a repeatable run follow from its requests only.
    const aside = this.#begin(`srv_aside${base62(systemRandom, 8)}`, { limits, wish: NO_WISH })
    this.#asides.add(aside)
    try {
      const sandbox = await aside.sandbox
      return sandbox === null ? null : await use(sandbox)
    } finally {
      this.#asides.delete(aside)
      await this.#remove(aside)
    }
  }

  /** Makes another empty workspace for a server, as `ComputeDriver.create` does. */
  create(serverId: string, wish: ServerWish, storageBytes: number): Promise<ServerHandle> {
    return this.#driver.create(serverId, wish, storageBytes)
  }

  /** Returns a server's files, whether it runs or not. */
  workspace(handle: ServerHandle): Workspace {
    return this.#driver.workspace(handle)
  }

  /** Keeps spare servers with these limits, soon. */
  prepare(limits: Limits, wish: ServerWish = NO_WISH): void {
    this.#order ??= { limits, wish }
    this.#refillIn(FIRST_MS)
  }

  /** Removes the spare servers and the sandboxes of berth itself, and starts none any more. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer ?? undefined)
    const ended = [...this.#spares.splice(0), ...this.#asides]
    await Promise.all(ended.map((spare) => this.#remove(spare)))
  }

  #nextId(): string {
    return this.#options.nextId((id) => this.#kept.includes(id))
  }

  #take(order: Order): Spare | undefined {
    const asked = this.#asked
    this.#asked = order
    const index = this.#spares.findIndex((spare) => isSame(spare.order, order))
    if (index !== -1) return this.#spares.splice(index, 1)[0]
    // Asked for twice in a row, others are of more use.
    if (asked !== null && isSame(asked, order)) this.#replace(order)
    return undefined
  }

  #replace(order: Order): void {
    this.#order = order
    for (const spare of this.#spares.splice(0)) void this.#remove(spare)
  }

  #refillIn(ms: number): void {
    if (this.#closed || this.#options.spareServers === 0) return
    clearTimeout(this.#timer ?? undefined)
    this.#timer = setTimeout(() => this.#outside(() => this.#refill()), ms)
    this.#timer.unref()
  }

  /** Starts what is missing. What callers wait for comes first. */
  #refill(): void {
    const order = this.#order ?? this.#asked
    if (order === null || this.#starting > 0) return
    this.#order = order
    while (this.#spares.length < this.#options.spareServers)
      this.#spares.push(this.#begin(this.#nextId(), order))
  }

  #begin(id: string, order: Order): Spare {
    const handle = this.#driver.create(id, order.wish, order.limits.storageBytes)
    const start = async (): Promise<Sandbox> => {
      const sandbox = await this.#driver.start(id, await handle, order.limits)
      void sandbox.exited.then(() => this.#forget(spare))
      return sandbox
    }
    const sandbox = start().catch((error: unknown) => {
      // A creation reports the error, if it lasts.
      this.#options.logger.info('a spare server did not start', { error })
      void this.#forget(spare)
      return null
    })
    const spare: Spare = { id, order, handle, sandbox }
    return spare
  }

  /** Removes a spare that has ended by itself. The next creation starts another. */
  async #forget(spare: Spare): Promise<void> {
    if (!this.#spares.includes(spare)) return
    this.#spares = this.#spares.filter((other) => other !== spare)
    await this.#remove(spare)
  }

  async #remove({ id, handle, sandbox }: Spare): Promise<void> {
    try {
      await (await sandbox)?.stop()
      await this.#driver.destroy(await handle)
    } catch (error) {
      // The next start of berth removes what is left.
      this.#options.logger.info('a spare server could not be removed', { serverId: id, error })
    }
  }
}

const isSame = (a: Order, b: Order): boolean =>
  a.limits.cpus === b.limits.cpus &&
  a.limits.memoryBytes === b.limits.memoryBytes &&
  a.limits.processes === b.limits.processes &&
  a.limits.storageBytes === b.limits.storageBytes &&
  a.wish.image === b.wish.image &&
  a.wish.root === b.wish.root

/** Called when a sandbox ended without being asked to. */
type SandboxExitListener = (serverId: string, reason: string) => void

/** The sandboxes that run in this process, by server. */
export class SandboxRegistry {
  readonly #logger: Logger
  readonly #onGone: SandboxExitListener
  /** A sandbox ends by itself on behalf of nobody, not of the request that started it. */
  readonly #outside = AsyncLocalStorage.snapshot()
  readonly #running = new Map<string, Sandbox>()
  #closed = false

  constructor(logger: Logger, onGone: SandboxExitListener) {
    this.#logger = logger
    this.#onGone = onGone
  }

  /** Returns the server's sandbox if it runs. */
  get(serverId: string): Sandbox | undefined {
    return this.#running.get(serverId)
  }

  /** Starts the server's sandbox, unless it runs. The caller sees to it that two calls for one server do not overlap. */
  async start(serverId: string, start: () => Promise<Sandbox>): Promise<Sandbox> {
    const present = this.#running.get(serverId)
    if (present) return present
    if (this.#closed) throw new ComputeError('The service is stopping.')
    const sandbox = await start()
    if (this.#closed) {
      await sandbox.stop()
      throw new ComputeError('The service is stopping.')
    }
    this.#running.set(serverId, sandbox)
    void sandbox.exited.then(({ reason }) => {
      if (this.#running.get(serverId) !== sandbox) return
      this.#running.delete(serverId)
      this.#logger.warn('a sandbox ended by itself', { serverId, reason })
      this.#outside(() => this.#onGone(serverId, reason))
    })
    return sandbox
  }

  /** Ends every process of the server; resolves when none is left. */
  async stop(serverId: string): Promise<void> {
    const sandbox = this.#running.get(serverId)
    if (!sandbox) return
    this.#running.delete(serverId)
    await sandbox.stop()
  }

  /** Pauses every process of every server until the returned function is called. If one cannot be, none is. */
  async pause(): Promise<() => void> {
    const paused = await Promise.allSettled([...this.#running.values()].map((sandbox) => sandbox.pause()))
    const resume = (): void => {
      for (const one of paused) if (one.status === 'fulfilled') one.value()
    }
    const failed = paused.find((one) => one.status === 'rejected')
    if (failed === undefined) return resume
    resume()
    throw failed.reason
  }

  /** Ends every process of every server and starts none anymore. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.#running.keys()].map((serverId) => this.stop(serverId)))
  }
}
