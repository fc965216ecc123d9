import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import type { ComputeDriver, Handle, Limits, Remains } from './driver.ts'
import type { Sandbox } from './sandbox.ts'
import type { Workspace } from './workspace.ts'

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
  create(): Promise<Handle>

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

/** A server that runs before it is created. */
interface Spare {
  readonly id: string
  readonly limits: Limits
  readonly handle: Promise<Handle>
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
  /** The limits of further ones; null for none. */
  #limits: Limits | null = null
  /** What the last creation asked for. */
  #asked: Limits | null = null
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
  takeStock(servers: readonly Handle[], deleted: readonly Handle[]): Remains {
    const remains = this.#driver.takeStock(servers, deleted)
    this.#kept = remains.kept
    return remains
  }

  /** Begins the creation of a server with these limits: of a spare one if there is any. */
  provision(limits: Limits): Provision {
    const spare = this.#take(limits)
    const id = spare?.id ?? this.#nextId()
    const create = once(() => spare?.handle ?? this.#driver.create(id))
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
    handle: Handle,
    limits: Limits,
    started?: Promise<Sandbox | null>,
  ): Promise<Sandbox> {
    this.#starting += 1
    try {
      const ready = (await started) ?? null
      const isUsable = ready !== null && !ready.ending
      const sandbox = isUsable ? ready : await this.#driver.start(serverId, handle, limits)
      this.#refillIn(REFILL_MS)
      return sandbox
    } finally {
      this.#starting -= 1
    }
  }

  /** Returns a server's files, whether it runs or not. */
  workspace(handle: Handle): Workspace {
    return this.#driver.workspace(handle)
  }

  /** Keeps spare servers with these limits, soon. */
  prepare(limits: Limits): void {
    this.#limits ??= limits
    this.#refillIn(FIRST_MS)
  }

  /** Removes the spare servers, and starts none any more. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer ?? undefined)
    await Promise.all(this.#spares.splice(0).map((spare) => this.#remove(spare)))
  }

  #nextId(): string {
    return this.#options.nextId((id) => this.#kept.includes(id))
  }

  #take(limits: Limits): Spare | undefined {
    const asked = this.#asked
    this.#asked = limits
    const index = this.#spares.findIndex((spare) => isSame(spare.limits, limits))
    if (index !== -1) return this.#spares.splice(index, 1)[0]
    // Asked for twice in a row, others are of more use.
    if (asked !== null && isSame(asked, limits)) this.#replace(limits)
    return undefined
  }

  #replace(limits: Limits): void {
    this.#limits = limits
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
    const limits = this.#limits ?? this.#asked
    if (limits === null || this.#starting > 0) return
    this.#limits = limits
    while (this.#spares.length < this.#options.spareServers) this.#spares.push(this.#begin(limits))
  }

  #begin(limits: Limits): Spare {
    const id = this.#nextId()
    const handle = this.#driver.create(id)
    const start = async (): Promise<Sandbox> => {
      const sandbox = await this.#driver.start(id, await handle, limits)
      void sandbox.exited.then(() => this.#forget(spare))
      return sandbox
    }
    const sandbox = start().catch((error: unknown) => {
      // A creation reports the error, if it lasts.
      this.#options.logger.info('a spare server did not start', { error })
      void this.#forget(spare)
      return null
    })
    const spare: Spare = { id, limits, handle, sandbox }
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

const isSame = (a: Limits, b: Limits): boolean =>
  a.cpus === b.cpus &&
  a.memoryBytes === b.memoryBytes &&
  a.processes === b.processes &&
  a.storageBytes === b.storageBytes
