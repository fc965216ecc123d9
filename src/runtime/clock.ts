/** A pending call that can be taken back. */
export interface Timer {
  /** Takes the call back; harmless when it has run. */
  cancel(): void
}

/**
 * The one source of time for everything that is dated, waits or expires by the calendar. How long a
 * process may take to end is physical time and does not go by it.
 */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
  /** Runs `call` once, when `ms` milliseconds of this clock have passed. */
  after(ms: number, call: () => void): Timer
}

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, call) {
    const timer = setTimeout(call, ms)
    timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

/** A clock that stands at one moment: dates repeat from run to run and nothing falls due. */
export const frozenClock = (at: number): Clock => ({
  now: () => at,
  after: () => ({ cancel: () => {} }),
})

/** ISO 8601 in UTC with milliseconds, the form of every time in an answer. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
