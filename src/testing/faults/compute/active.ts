import { AsyncLocalStorage } from 'node:async_hooks'
import { ComputeError, type NetworkFault, type Sandbox } from '../../../compute/sandbox.ts'

/** The faults that last. */
const LASTING_FAULT_KINDS = ['disk_full', 'hang', 'network', 'oom', 'slow_exec'] as const

/** The kind of a fault that lasts. */
export type LastingFaultKind = (typeof LASTING_FAULT_KINDS)[number]

/** How a fault lasts. */
export interface FaultDuration {
  /** Milliseconds of real time until it ends. */
  readonly forMs?: number
  /** Number of commands that it applies to before it ends. */
  readonly times?: number
  /** Milliseconds that each command waits, for `slow_exec`. */
  readonly delayMs?: number
  /** What happens to what leaves the server, for `network`. */
  readonly network?: NetworkFault
}

/** A fault that lasts, and how often it may still apply. */
export interface ActiveFault extends FaultDuration {
  readonly kind: LastingFaultKind
  readonly timesLeft?: number
}

/**
 * Milliseconds after the end of a hang at which processes are resumed once more. A shell that was started during the hang
 * stops itself, on a busy machine only after the hang is over.
 */
const RESUME_AGAIN_MS = [10, 40, 150, 500, 2_000, 8_000]

/** An active fault. */
interface Entry {
  kind: LastingFaultKind
  duration: FaultDuration
  timesLeft: number
  timer: ReturnType<typeof setTimeout> | undefined
  /** Resolves when it is over. */
  over: PromiseWithResolvers<void>
}

/** The faults that last in one sandbox, one of each kind. They end with it at the latest. */
export class ActiveFaults {
  readonly #sandbox: Sandbox
  readonly #entries = new Map<LastingFaultKind, Entry>()
  readonly #onFull: (full: boolean) => Promise<void>
  readonly #onChange: () => void
  #exited = false

  /**
   * @param onFull called when the storage counts as full, and when it no longer does
   * @param onChange called when one begins, applies or ends
   */
  constructor(sandbox: Sandbox, onFull: (full: boolean) => Promise<void>, onChange: () => void) {
    this.#sandbox = sandbox
    this.#onFull = onFull
    this.#onChange = onChange
    void sandbox.exited.then(() => {
      this.#exited = true
      this.liftAll()
    })
  }

  /** Lists the active faults. */
  list(): ActiveFault[] {
    return [...this.#entries.values()].map(({ kind, duration, timesLeft }) => ({
      kind,
      ...duration,
      ...(duration.times === undefined ? {} : { timesLeft }),
    }))
  }

  /** Begins a fault, replacing one of the same kind; resolves when it is in effect. */
  async begin(kind: LastingFaultKind, duration: FaultDuration): Promise<void> {
    this.lift(kind)
    const entry: Entry = {
      kind,
      duration,
      timesLeft: duration.times ?? Number.POSITIVE_INFINITY,
      timer: undefined,
      over: Promise.withResolvers(),
    }
    this.#entries.set(kind, entry)
    this.#onChange()
    const { faultInjection } = this.#sandbox
    if (kind === 'hang') await faultInjection.freeze()
    if (kind === 'network') await this.#sandbox.outboundControl?.disturb(duration.network ?? null)
    if (kind === 'disk_full') {
      await this.#onFull(true)
      await faultInjection.fillStorage(true)
    }
    // It may have been lifted before it held.
    if (!this.#entries.has(kind)) return this.#undo(kind)
    if (this.#entries.get(kind) !== entry) return
    if (this.#exited) this.lift(kind)
    else if (duration.forMs !== undefined)
      entry.timer = setTimeout(() => this.lift(kind), duration.forMs).unref()
  }

  /** Ends one. @returns whether it lasted */
  lift(kind: LastingFaultKind): boolean {
    const entry = this.#entries.get(kind)
    if (entry === undefined) return false
    this.#entries.delete(kind)
    clearTimeout(entry.timer)
    entry.over.resolve()
    this.#undo(kind)
    this.#onChange()
    return true
  }

  /**
   * Ends all.
   *
   * @returns the kinds that were active
   */
  liftAll(): LastingFaultKind[] {
    return [...this.#entries.keys()].filter((kind) => this.lift(kind))
  }

  /** Reports whether a fault of this kind lasts. */
  has(kind: LastingFaultKind): boolean {
    return this.#entries.has(kind)
  }

  /**
   * Applies a fault to a command, if it is active.
   *
   * @returns its duration, and a promise of its end
   */
  apply(kind: LastingFaultKind): { duration: FaultDuration; over: Promise<void> } | null {
    const entry = this.#entries.get(kind)
    if (entry === undefined) return null
    entry.timesLeft -= 1
    // Commands that it has applied to stay affected; it no longer applies to others.
    if (entry.timesLeft <= 0) {
      this.#entries.delete(kind)
      clearTimeout(entry.timer)
    }
    this.#onChange()
    return { duration: entry.duration, over: entry.over.promise }
  }

  #resume(): void {
    const { faultInjection } = this.#sandbox
    faultInjection.thaw()
    for (const delay of RESUME_AGAIN_MS) {
      setTimeout(() => {
        if (!this.#exited && !this.has('hang')) faultInjection.thaw()
      }, delay).unref()
    }
  }

  #undo(kind: LastingFaultKind): void {
    const { faultInjection } = this.#sandbox
    if (kind === 'hang') this.#resume()
    // The network of a sandbox that ends goes with it.
    if (kind === 'network') void this.#sandbox.outboundControl?.disturb(null).catch(() => {})
    if (kind !== 'disk_full') return
    void this.#onFull(false)
    void faultInjection.fillStorage(false)
  }
}

/** Makes the compute driver fail in the work of certain requests, including all that this work begins. */
export class BackendFailure {
  readonly #reasons = new AsyncLocalStorage<string>()

  /**
   * Runs work in which the driver fails.
   *
   * @param reason the failures' message, a sentence
   */
  during<T>(reason: string, work: () => T): T {
    return this.#reasons.run(reason, work)
  }

  /** Returns the failure for the calling work; null if it should not fail. */
  current(): ComputeError | null {
    const reason = this.#reasons.getStore()
    return reason === undefined ? null : new ComputeError(reason)
  }
}
