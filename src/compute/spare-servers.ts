import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from '../runtime/logger.ts'
import { DelegatingCompute } from './delegating-compute.ts'
import type { Compute, Handle, Limits } from './driver.ts'
import type { Sandbox } from './sandbox.ts'

/** Milliseconds after the start of berth in which nobody waits for spare servers, so they take no time from it. */
const FIRST_MS = 1_000

/**
 * Milliseconds between the start of a server and that of the next spare one. The first command of the new server usually
 * comes within them, and takes three times as long if it shares the processors with a start.
 */
const REFILL_MS = 15

/** A server that runs before it is created. */
interface Spare {
  readonly id: string
  readonly limits: Limits
  readonly handle: Promise<Handle>
  /** Null if it did not start. */
  readonly sandbox: Promise<Sandbox | null>
}

/** A spare server that is to be created. */
interface TakenSpare {
  readonly id: string
  /** Removes the server unless it was started meanwhile. To be called when its creation has ended. */
  release(): Promise<void>
}

/** The options of `SpareServers`. */
interface SpareServersOptions {
  /** How many are kept. */
  count: number
  /** Returns the id of a new server. */
  nextId(): string
  logger: Logger
}

/**
 * Starts servers before anybody asks for them, since most of the time that a creation takes is that of starting a
 * sandbox. A spare server is like any other that runs and has no command yet: it has its id, directory, limits and
 * network. It has no record, so nobody sees or pays for it.
 *
 * The creation of a server takes one by `take`, and then calls `create` and `start` as for another server.
 */
export class SpareServers extends DelegatingCompute {
  protected override readonly inner: Compute
  readonly #options: SpareServersOptions
  /** Spares start on behalf of nobody, not of the request after which they do. */
  readonly #outside = AsyncLocalStorage.snapshot()
  /** Those that can be taken, the oldest first. */
  #spares: Spare[] = []
  readonly #taken = new Map<string, Spare>()
  /** The limits of further ones; null for none. */
  #limits: Limits | null = null
  /** What the last creation asked for. */
  #asked: Limits | null = null
  /** How many servers start on behalf of callers. */
  #starting = 0
  #timer: Timer | null = null
  #closed = false

  constructor(inner: Compute, options: SpareServersOptions) {
    super()
    this.inner = inner
    this.#options = options
  }

  /** Keeps spare servers with these limits, soon. */
  prepare(limits: Limits): void {
    this.#limits ??= limits
    this.#refillIn(FIRST_MS)
  }

  /** Returns a spare server with these limits; null if there is none. */
  take(limits: Limits): TakenSpare | null {
    const asked = this.#asked
    this.#asked = limits
    const index = this.#spares.findIndex((spare) => isSame(spare.limits, limits))
    const [spare] = index === -1 ? [] : this.#spares.splice(index, 1)
    if (spare === undefined) {
      // Asked for twice in a row, others are of more use.
      if (asked !== null && isSame(asked, limits)) this.#replace(limits)
      return null
    }
    this.#taken.set(spare.id, spare)
    return { id: spare.id, release: () => this.#release(spare) }
  }

  override create(serverId: string): Promise<Handle> {
    return this.#taken.get(serverId)?.handle ?? super.create(serverId)
  }

  override async start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    const spare = this.#taken.get(serverId)
    this.#starting += 1
    try {
      const ready = (await spare?.sandbox) ?? null
      const isUsable = ready !== null && !ready.ending
      const sandbox = isUsable ? ready : await super.start(serverId, handle, limits)
      this.#taken.delete(serverId)
      this.#refillIn(REFILL_MS)
      return sandbox
    } finally {
      this.#starting -= 1
    }
  }

  /** Removes the spare servers, and starts none any more. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer ?? undefined)
    await Promise.all(this.#spares.splice(0).map((spare) => this.#remove(spare)))
  }

  #replace(limits: Limits): void {
    this.#limits = limits
    for (const spare of this.#spares.splice(0)) void this.#remove(spare)
  }

  async #release(spare: Spare): Promise<void> {
    if (this.#taken.delete(spare.id)) await this.#remove(spare)
  }

  #refillIn(ms: number): void {
    if (this.#closed || this.#options.count === 0) return
    clearTimeout(this.#timer ?? undefined)
    this.#timer = setTimeout(() => this.#outside(() => this.#refill()), ms)
    this.#timer.unref()
  }

  /** Starts what is missing. What callers wait for comes first. */
  #refill(): void {
    const limits = this.#limits ?? this.#asked
    if (limits === null || this.#starting > 0) return
    this.#limits = limits
    while (this.#spares.length < this.#options.count) this.#spares.push(this.#begin(limits))
  }

  #begin(limits: Limits): Spare {
    const id = this.#options.nextId()
    const handle = this.inner.create(id)
    const start = async (): Promise<Sandbox> => {
      const sandbox = await this.inner.start(id, await handle, limits)
      void sandbox.exited.then(() => this.#forget(spare))
      return sandbox
    }
    const sandbox = start().catch((error: unknown) => {
      // Whoever creates a server learns of it, if it goes on.
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
      await this.inner.destroy(await handle)
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
