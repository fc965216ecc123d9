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
  /** The calendar: milliseconds since 1970-01-01T00:00:00Z. A correction may move it either way. */
  now(): number
  /** Whole milliseconds that have passed on this clock; never goes back, whatever the calendar does. */
  elapsed(): number
  /**
   * Runs `call` once, when `ms` milliseconds have passed by `elapsed`, never earlier. Whoever moves
   * the clock waits for the promise it returns; `call` deals with its own failures.
   */
  after(ms: number, call: () => void | Promise<void>): Timer
  /**
   * Has `call` called when the calendar was moved while no time passed: what goes by dates sets its
   * timers anew. Whoever moved it waits for the promise that `call` returns.
   *
   * @returns ends it
   */
  onCorrection(call: () => void | Promise<void>): () => void
  /**
   * Has `call` called each time that something has fallen due while the clock is moved. The clock stands at that moment
   * until the promise that `call` returns is over: what came of it, such as events to be sent, belongs to the same moment.
   *
   * @returns ends it
   */
  onStep(call: () => void | Promise<void>): () => void
}

/** The machine that a clock follows. */
export interface Machine {
  /** Milliseconds by a source that never jumps; it may stand while the machine is suspended. */
  monotonic(): number
  /** Milliseconds since 1970, as the machine believes. */
  calendar(): number
}

/** This machine. */
export const thisMachine: Machine = { monotonic: () => performance.now(), calendar: () => Date.now() }

/** Where a clock stands, to be taken up later. */
export interface ClockState {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Milliseconds by which its calendar is ahead of the machine's. */
  readonly offset: number
  readonly frozen: boolean
}

/** What a clock starts from. */
export interface ClockOptions {
  /** It stands at this moment until it is told otherwise; without it, it follows the machine. */
  frozenAt?: number | null
  /** It follows the machine, and shows this moment at the start. */
  startAt?: number | null
  machine?: Machine
}

/** The machine's calendar may differ so far from the monotonic source before it is followed. */
const DRIFT_MS = 2_000

/** The longest delay that the system's timers take. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

interface PendingTimer {
  /** By `elapsed`, whole milliseconds. */
  due: number
  call: () => void | Promise<void>
}

/**
 * The clock: it follows the machine or stands, and can be moved. Timers are due in elapsed time, so
 * that a step of the machine's calendar, or a laptop that slept, neither fires nor delays any.
 */
export class SteerableClock implements Clock {
  readonly #machine: Machine
  readonly #startsAt: number | null
  readonly #startsFrozen: boolean
  readonly #timers = new Set<PendingTimer>()
  readonly #correctionListeners = new Set<() => void | Promise<void>>()
  readonly #stepListeners = new Set<() => void | Promise<void>>()
  #frozen: boolean
  /** The elapsed time at which it stands, or null while it follows the machine. */
  #pausedAt: number | null
  /** What the monotonic source showed when no time had elapsed. */
  #origin = 0
  /** Calendar minus elapsed: this clock's, and the machine's where it is followed. */
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
    this.#offset = this.#startsAt ?? machine.calendar()
    if (!this.#frozen) this.#resume()
  }

  now(): number {
    this.#applyDrift()
    return this.elapsed() + this.#offset
  }

  elapsed(): number {
    return Math.floor(this.#exactElapsed())
  }

  after(ms: number, call: () => void | Promise<void>): Timer {
    const timer = { due: Math.ceil(this.#exactElapsed() + Math.max(0, ms)), call }
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

  /** Whether it stands until it is told otherwise. */
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

  /** Where it stands. */
  get state(): ClockState {
    return { now: this.now(), offset: this.offset, frozen: this.#frozen }
  }

  /**
   * Begins anew for others: forgets every timer and listener, and stands or goes as a state says; without one, as at
   * the start. Runs nothing. What was moving it has been waited for.
   */
  begin(state?: ClockState): Promise<void> {
    return this.#inTurn(() => {
      this.stop()
      this.#correctionListeners.clear()
      this.#stepListeners.clear()
      this.#frozen = state?.frozen ?? this.#startsFrozen
      if (this.#frozen) this.#pause()
      else this.#resume()
      const machine = this.#machine.calendar()
      const started = this.#startsAt ?? machine
      const calendar = state === undefined ? started : state.frozen ? state.now : machine + state.offset
      this.#offset = calendar - this.elapsed()
    })
  }

  /** Stands from now on. */
  freeze(): Promise<void> {
    return this.#inTurn(() => {
      this.#applyDrift()
      this.#frozen = true
      this.#pause()
    })
  }

  /** Goes on from where it stands. */
  unfreeze(): Promise<void> {
    return this.#inTurn(() => {
      this.#frozen = false
      this.#resume()
    })
  }

  /**
   * Lets `ms` milliseconds pass: what falls due on the way runs in order, each at its own moment,
   * also what this work sets. Resolves when all that is done; of several calls each waits for the one
   * before. Never called and awaited by what a timer runs.
   *
   * @throws what the first failing call threw, when all have run
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

  /** As at the start: at the moment that it showed, or at the machine's time. Runs nothing. */
  reset(): Promise<void> {
    return this.#inTurn(() => {
      this.#frozen = this.#startsFrozen
      const calendar = this.#startsAt ?? this.#machine.calendar()
      if (this.#frozen) this.#pause()
      else this.#resume()
      const by = calendar - this.elapsed() - this.#offset
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
    // Whoever asked for the time may be in the middle of something.
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
    if (!this.#frozen) this.#resume()
    if (failures.length > 0) throw failures[0]
  }

  /** The timer that is due first, until `end`; of those due together the one set first. */
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
    const delay = Math.min(Math.max(0, Math.ceil(due - this.#exactElapsed())), LONGEST_DELAY_MS)
    this.#alarm = setTimeout(() => this.#ring(), delay)
    this.#alarm.unref()
  }

  #ring(): void {
    if (this.#pausedAt !== null) return
    const end = this.elapsed()
    try {
      for (let next = this.#next(end); next; next = this.#next(end)) {
        this.#timers.delete(next)
        void next.call()
      }
    } finally {
      this.#armNext()
    }
  }
}

/** The machine's calendar, for what the machine itself has dated. */
export const machineNow = (): number => thisMachine.calendar()

/** A date, with a time of day and its offset from UTC where wanted. */
const ISO_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/

/** Reads an ISO 8601 time: milliseconds since 1970, or null where it is none or its day does not exist. */
export function parseIso(text: string): number | null {
  const [, year, month, day] = (ISO_TIME.exec(text) ?? []).map(Number)
  if (year === undefined || month === undefined || day === undefined) return null
  // Date.parse takes the 30th of February for the 2nd of March.
  if (new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : at
}

/** ISO 8601 in UTC with milliseconds, the form of every time in an answer. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
