import { type Machine, SteerableClock } from '../../src/runtime/clock.ts'

/** A clock that moves on request; what falls due on the way runs in order. */
export class MovedClock extends SteerableClock {
  constructor(now = Date.UTC(2030, 0, 1)) {
    super({ frozenAt: now })
  }
}

/** A machine whose time passes, and whose calendar is corrected, when a test says so. */
export class PretendedMachine implements Machine {
  #monotonic = 0
  #calendar: number

  constructor(calendar = Date.UTC(2030, 0, 1)) {
    this.#calendar = calendar
  }

  monotonic = (): number => this.#monotonic
  calendar = (): number => this.#calendar

  /** Time passes. */
  pass(ms: number): void {
    this.#monotonic += ms
    this.#calendar += ms
  }

  /** The calendar alone is moved. */
  correct(ms: number): void {
    this.#calendar += ms
  }
}
