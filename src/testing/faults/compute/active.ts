import type { Sandbox } from '../../../compute/driver.ts'

/** The faults that last. */
export const LASTING_KINDS = ['disk_full', 'hang', 'oom', 'slow_exec'] as const

/** The kind of a fault that lasts. */
export type LastingKind = (typeof LASTING_KINDS)[number]

/** What can go wrong inside a server: a crash happens, all else lasts. */
export const SERVER_FAULT_KINDS = ['crash', 'oom', 'disk_full', 'hang', 'slow_exec'] as const

/** The kind of a fault inside a server. */
export type ServerFaultKind = (typeof SERVER_FAULT_KINDS)[number]

/** How a fault lasts. */
export interface Lasting {
  /** Until so many milliseconds of physical time have passed. */
  readonly forMs?: number
  /** Until so many commands have met it. */
  readonly times?: number
  /** Milliseconds that each command waits, for `slow_exec`. */
  readonly delayMs?: number
}

/** A fault that lasts, and how often it may still strike. */
export interface ActiveFault extends Lasting {
  readonly kind: LastingKind
  readonly timesLeft?: number
}

/**
 * Milliseconds after the end of a hang at which processes are resumed once more. A shell that was started during the hang
 * stops itself, on a busy machine only after the hang is over.
 */
const RESUME_AGAIN_MS = [10, 40, 150, 500, 2_000, 8_000]

/** What a fault does when it begins and when it is over. */
interface Entry {
  kind: LastingKind
  lasting: Lasting
  timesLeft: number
  timer: ReturnType<typeof setTimeout> | undefined
  /** Resolves when it is over. */
  over: PromiseWithResolvers<void>
}

/** The faults that last in one sandbox, one of each kind. They end with it at the latest. */
export class ActiveFaults {
  readonly #sandbox: Sandbox
  readonly #entries = new Map<LastingKind, Entry>()
  readonly #onFull: (full: boolean) => Promise<void>
  #gone = false

  /** @param onFull has the storage count as full for those who write, or no more */
  constructor(sandbox: Sandbox, onFull: (full: boolean) => Promise<void>) {
    this.#sandbox = sandbox
    this.#onFull = onFull
    void sandbox.exited.then(() => {
      this.#gone = true
      this.liftAll()
    })
  }

  /** Those that last now. */
  list(): ActiveFault[] {
    return [...this.#entries.values()].map(({ kind, lasting, timesLeft }) => ({
      kind,
      ...lasting,
      ...(lasting.times === undefined ? {} : { timesLeft }),
    }))
  }

  /** Begins one, in place of one of its kind; resolves when it holds. */
  async begin(kind: LastingKind, lasting: Lasting): Promise<void> {
    this.lift(kind)
    const entry: Entry = {
      kind,
      lasting,
      timesLeft: lasting.times ?? Number.POSITIVE_INFINITY,
      timer: undefined,
      over: Promise.withResolvers(),
    }
    this.#entries.set(kind, entry)
    const { faultInjection } = this.#sandbox
    if (kind === 'hang') await faultInjection.freeze()
    if (kind === 'disk_full') {
      await this.#onFull(true)
      await faultInjection.fillStorage(true)
    }
    // It may have been lifted before it held.
    if (!this.#entries.has(kind)) return this.#undo(kind)
    if (this.#entries.get(kind) !== entry) return
    if (this.#gone) this.lift(kind)
    else if (lasting.forMs !== undefined)
      entry.timer = setTimeout(() => this.lift(kind), lasting.forMs).unref()
  }

  /** Ends one. @returns whether it lasted */
  lift(kind: LastingKind): boolean {
    const entry = this.#entries.get(kind)
    if (entry === undefined) return false
    this.#entries.delete(kind)
    clearTimeout(entry.timer)
    entry.over.resolve()
    this.#undo(kind)
    return true
  }

  /** Ends all. @returns those that lasted */
  liftAll(): LastingKind[] {
    return [...this.#entries.keys()].filter((kind) => this.lift(kind))
  }

  /** Whether one lasts. */
  has(kind: LastingKind): boolean {
    return this.#entries.has(kind)
  }

  /** Has a command meet a fault where it lasts. @returns how it lasts, and what resolves when it is over */
  meet(kind: LastingKind): { lasting: Lasting; over: Promise<void> } | null {
    const entry = this.#entries.get(kind)
    if (entry === undefined) return null
    entry.timesLeft -= 1
    // Those that have met it are not let off: it is over for others alone.
    if (entry.timesLeft <= 0) {
      this.#entries.delete(kind)
      clearTimeout(entry.timer)
    }
    return { lasting: entry.lasting, over: entry.over.promise }
  }

  #resume(): void {
    const { faultInjection } = this.#sandbox
    faultInjection.thaw()
    for (const delay of RESUME_AGAIN_MS) {
      setTimeout(() => {
        if (!this.#gone && !this.has('hang')) faultInjection.thaw()
      }, delay).unref()
    }
  }

  #undo(kind: LastingKind): void {
    const { faultInjection } = this.#sandbox
    if (kind === 'hang') this.#resume()
    if (kind !== 'disk_full') return
    void this.#onFull(false)
    void faultInjection.fillStorage(false)
  }
}
