import { AsyncLocalStorage } from 'node:async_hooks'
import { LONGEST_TIMER_MS } from './wait.ts'

/** What a timer is for, so a person knows what will happen when time passes. */
interface TimerPurpose {
  /** A noun and what happens to it, such as `server.sleep`. */
  readonly name: string
  /** Id of the thing that it happens to; null if there is none. */
  readonly id: string | null
}

/** A timer that waits. */
interface DueTimer extends TimerPurpose {
  /** When it is due by the calendar as it is now, milliseconds since 1970. */
  readonly at: number
}

/** A pending call that can be taken back. */
export interface Timer {
  /** Takes the call back; harmless when it has run. */
  cancel(): void
}

/**
 * The one source of time for everything that is dated, waits or expires. How long a process may take
 * to end is physical time and does not go by it.
 */
export interface Clock {
  /** Returns the calendar: milliseconds since 1970-01-01T00:00:00Z. A correction may move it either way. */
  now(): number
  /** Returns the whole milliseconds that have passed on this clock; never decreases, whatever the calendar does. */
  elapsed(): number
  /**
   * Runs `call` once, when `ms` milliseconds have passed by `elapsed`, never earlier. Moving the clock waits for the
   * returned promise; `call` handles its own failures. A timer without a purpose is not in `SteerableClock.next`.
   */
  after(ms: number, call: () => void | Promise<void>, purpose?: TimerPurpose): Timer
  /**
   * Calls `call` after the calendar was moved without time passing, so code that depends on dates can reset its
   * timers. Moving the calendar waits for the returned promise.
   *
   * @returns a function that unsubscribes
   */
  onCorrection(call: () => void | Promise<void>): () => void
  /**
   * Calls `call` after each timer that fires while the clock is moved. The clock stays at that time until the
   * returned promise resolves, so consequences, such as events to send, have the same time.
   *
   * @returns a function that unsubscribes
   */
  onStep(call: () => void | Promise<void>): () => void
}

/** The machine that a clock follows. */
export interface Machine {
  /** Returns milliseconds from a source that never jumps; it may stop while the machine is suspended. */
  monotonic(): number
  /** Returns milliseconds since 1970, as the machine believes. */
  calendar(): number
}

/** This machine. */
const thisMachine: Machine = { monotonic: () => performance.now(), calendar: () => Date.now() }

/** The state of a clock, to be restored later. */
export interface ClockState {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Milliseconds by which its calendar is ahead of the machine's. */
  readonly offset: number
  readonly frozen: boolean
}

/** The initial state of a clock. */
export interface ClockOptions {
  /** Freezes the clock at this time; without it, the clock follows the machine. */
  frozenAt?: number | null
  /** It follows the machine, and shows this moment at the start. */
  startAt?: number | null
  machine?: Machine
}

/** The machine's calendar may differ so far from the monotonic source before it is followed. */
const DRIFT_MS = 2_000

interface PendingTimer {
  /** By `elapsed`, whole milliseconds. */
  due: number
  call: () => void | Promise<void>
  purpose: TimerPurpose | undefined
}

/**
 * A clock that follows the machine or is frozen, and can be moved. Timers are due in elapsed time, so neither a step
 * of the machine's calendar nor a suspended laptop fires or delays any.
 */
export class SteerableClock implements Clock {
  readonly #machine: Machine
  readonly #startsAt: number | null
  readonly #startsFrozen: boolean
  /** Timers run on behalf of nobody, not of the request in which the system's timer was set. */
  readonly #outside = AsyncLocalStorage.snapshot()
  readonly #timers = new Set<PendingTimer>()
  readonly #correctionListeners = new Set<() => void | Promise<void>>()
  readonly #stepListeners = new Set<() => void | Promise<void>>()
  #frozen: boolean
  /** The elapsed time at which it is paused, or null while it follows the machine. */
  #pausedAt: number | null
  /** Reading of the monotonic source at elapsed time 0. */
  #origin = 0
  /** Calendar minus elapsed time: this clock's, and the machine's while it is followed. */
  #offset: number
  #machineOffset = 0
  /** The due time for which the system's timer is set. */
  #armedFor = Number.POSITIVE_INFINITY
  #alarm: ReturnType<typeof setTimeout> | undefined
  #moves: Promise<unknown> = Promise.resolve()

  constructor({ frozenAt = null, startAt = null, machine = thisMachine }: ClockOptions = {}) {
    this.#machine = machine
    this.#startsAt = frozenAt ?? startAt
    this.#startsFrozen = frozenAt !== null
    this.#frozen = this.#startsFrozen
    this.#pausedAt = 0
    this.#offset = 0
    if (!this.#frozen) this.#resume()
    this.#offset = this.#initialOffset()
  }

  now(): number {
    this.#applyDrift()
    return this.elapsed() + this.#offset
  }

  elapsed(): number {
    return Math.floor(this.#exactElapsed())
  }

  after(ms: number, call: () => void | Promise<void>, purpose?: TimerPurpose): Timer {
    const timer = { due: Math.ceil(this.#exactElapsed() + Math.max(0, ms)), call, purpose }
    this.#timers.add(timer)
    if (timer.due < this.#armedFor) this.#arm(timer.due)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  onCorrection(call: () => void | Promise<void>): () => void {
    this.#correctionListeners.add(call)
    return () => void this.#correctionListeners.delete(call)
  }

  onStep(call: () => void | Promise<void>): () => void {
    this.#stepListeners.add(call)
    return () => void this.#stepListeners.delete(call)
  }

  /** Whether it is frozen until `unfreeze`. */
  get frozen(): boolean {
    return this.#frozen
  }

  /** Milliseconds by which its calendar is ahead of the machine's. */
  get offset(): number {
    const now = this.now()
    return this.#pausedAt === null ? this.#offset - this.#machineOffset : now - this.#machine.calendar()
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size
  }

  /** Returns the timers with a purpose that are due next, the soonest first; of those due together the one set first. */
  next(most: number): DueTimer[] {
    const calendar = this.now() - this.elapsed()
    return [...this.#timers]
      .flatMap(({ due, purpose }) => (purpose === undefined ? [] : [{ ...purpose, at: due + calendar }]))
      .sort((a, b) => a.at - b.at)
      .slice(0, most)
  }

  /** The current state, for `begin`. */
  get state(): ClockState {
    return { now: this.now(), offset: this.offset, frozen: this.#frozen }
  }

  /**
   * Starts again: forgets every timer and listener, and takes over a state or, without one, the initial state. Runs
   * no timer. Waits for earlier moves.
   */
  begin(state?: ClockState): Promise<void> {
    return this.#inTurn(() => {
      this.stop()
      this.#correctionListeners.clear()
      this.#stepListeners.clear()
      this.#frozen = state?.frozen ?? this.#startsFrozen
      if (this.#frozen) this.#pause()
      else this.#resume()
      if (state === undefined) this.#offset = this.#initialOffset()
      else this.#offset = state.frozen ? state.now - this.elapsed() : this.#machineOffset + state.offset
    })
  }

  /** Freezes the clock. */
  freeze(): Promise<void> {
    return this.#inTurn(() => {
      this.#applyDrift()
      this.#frozen = true
      this.#pause()
    })
  }

  /** Continues from the current time. */
  unfreeze(): Promise<void> {
    return this.#inTurn(() => {
      this.#frozen = false
      this.#resume()
    })
  }

  /**
   * Lets `ms` milliseconds pass. Timers due in between, including those set meanwhile, run in order, each at its own
   * time. Resolves after all of them; concurrent calls run one after the other. A timer must not await it.
   *
   * @throws the first timer's error, after all have run
   */
  advance(ms: number): Promise<void> {
    return this.#inTurn(() => this.#advanceBy(ms))
  }

  /** Moves the calendar: into the future by letting the time pass, into the past as a correction. */
  set(at: number): Promise<void> {
    return this.#inTurn(async () => {
      const ms = at - this.now()
      if (ms >= 0) await this.#advanceBy(ms)
      else await this.#correct(ms)
    })
  }

  /** Restores the initial state: the configured time, or the machine's. Runs no timer. */
  reset(): Promise<void> {
    return this.#inTurn(() => {
      this.#frozen = this.#startsFrozen
      if (this.#frozen) this.#pause()
      else this.#resume()
      const by = this.#initialOffset() - this.#offset
      if (by !== 0) return this.#correct(by)
    })
  }

  /** Drops every timer: nothing falls due any more. */
  stop(): void {
    this.#timers.clear()
    clearTimeout(this.#alarm)
    this.#armedFor = Number.POSITIVE_INFINITY
  }

  #exactElapsed(): number {
    return this.#pausedAt ?? this.#machine.monotonic() - this.#origin
  }

  /** Returns calendar minus elapsed time for the configured time, or for the machine's, which it then is exactly. */
  #initialOffset(): number {
    if (this.#startsAt !== null) return this.#startsAt - this.elapsed()
    return this.#pausedAt === null ? this.#machineOffset : this.#machine.calendar() - this.elapsed()
  }

  #pause(): void {
    this.#pausedAt = Math.ceil(this.#exactElapsed())
  }

  #resume(): void {
    this.#origin = this.#machine.monotonic() - this.#exactElapsed()
    this.#pausedAt = null
    this.#machineOffset = this.#machine.calendar() - this.elapsed()
    this.#armNext()
  }

  /** Takes over a step of the machine's calendar. */
  #applyDrift(): void {
    if (this.#pausedAt !== null) return
    const drift = this.#machine.calendar() - this.elapsed() - this.#machineOffset
    if (Math.abs(drift) <= DRIFT_MS) return
    this.#machineOffset += drift
    this.#offset += drift
    // The caller that asked for the time may be in the middle of an operation.
    queueMicrotask(() => void this.#notifyCorrection())
  }

  #correct(by: number): Promise<void> {
    this.#offset += by
    return this.#notifyCorrection()
  }

  async #notifyCorrection(): Promise<void> {
    await Promise.all([...this.#correctionListeners].map((listener) => listener()))
  }

  #inTurn<T>(move: () => T | Promise<T>): Promise<T> {
    const turn = this.#moves.then(move)
    this.#moves = turn.catch(() => {})
    return turn
  }

  async #advanceBy(ms: number): Promise<void> {
    this.#applyDrift()
    const isFollowing = !this.#frozen
    this.#pause()
    const end = this.elapsed() + ms
    const failures: unknown[] = []
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#timers.delete(next)
      this.#pausedAt = Math.max(next.due, this.elapsed())
      try {
        await next.call()
        await Promise.all([...this.#stepListeners].map((listener) => listener()))
      } catch (error) {
        failures.push(error)
      }
    }
    this.#pausedAt = end
    if (isFollowing) {
      // Ahead of the machine by exactly that much more, however long the timers took.
      this.#origin -= ms
      this.#machineOffset -= ms
      // The timers saw a whole millisecond that may have just begun, and time never goes back.
      while (this.#machine.monotonic() - this.#origin < end) await Bun.sleep(1)
      this.#pausedAt = null
      this.#armNext()
    }
    if (failures.length > 0) throw failures[0]
  }

  /** Returns the timer that is due first, until `end`; of those due together the one set first. */
  #next(end: number): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#timers) {
      if (timer.due <= end && (first === undefined || timer.due < first.due)) first = timer
    }
    return first
  }

  #armNext(): void {
    this.#armedFor = Number.POSITIVE_INFINITY
    const next = this.#next(Number.MAX_VALUE)
    if (next) this.#arm(next.due)
    else clearTimeout(this.#alarm)
  }

  #arm(due: number): void {
    if (this.#pausedAt !== null) return
    clearTimeout(this.#alarm)
    this.#armedFor = due
    const delay = Math.min(Math.max(0, Math.ceil(due - this.#exactElapsed())), LONGEST_TIMER_MS)
    this.#alarm = setTimeout(() => this.#ring(), delay)
    this.#alarm.unref()
  }

  #ring(): void {
    if (this.#pausedAt !== null) return
    const end = this.elapsed()
    try {
      for (let next = this.#next(end); next; next = this.#next(end)) {
        this.#timers.delete(next)
        void this.#outside(next.call)
      }
    } finally {
      this.#armNext()
    }
  }
}

/** Returns the machine's calendar, for dates that the machine itself has written. */
export const machineNow = (): number => thisMachine.calendar()

/** Formats a time as ISO 8601 in UTC with milliseconds, the form of every time in a response. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
