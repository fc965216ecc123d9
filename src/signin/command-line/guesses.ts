import type { Clock } from '../../runtime/clock.ts'

/** Wrong codes that are taken within `WINDOW_MS`. A person mistypes a few. */
const MOST = 10

/** The time within which they count, */
const WINDOW_MS = 60_000

/** and for which nothing is taken once they are used up. */
const PAUSE_MS = 60_000

/** Terminals that are counted; of more the one that came first is forgotten. */
const MOST_TERMINALS = 1_000

/** Who is meant where it is not one terminal. */
const ALL = Symbol('all')

interface Count {
  /** When wrong codes came, in milliseconds of `elapsed`, oldest first. */
  wrong: number[]
  pausedUntil: number
}

/**
 * Limits how often codes can be guessed, by the time that passes on the clock: no correction of it lifts the limit. Each
 * terminal has a limit of its own, by the challenge that its codes are bound to: what others guess keeps nobody out.
 */
export class Guesses {
  readonly #clock: Clock
  readonly #counts = new Map<string | typeof ALL, Count>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whole seconds until codes are taken again, of one terminal or wrong ones of all; 0 where they are. */
  secondsToWait(challenge: string | typeof ALL = ALL): number {
    const until = this.#counts.get(challenge)?.pausedUntil ?? 0
    return Math.max(0, Math.ceil((until - this.#clock.elapsed()) / 1_000))
  }

  /** A wrong code came of a terminal. */
  count(challenge: string): void {
    this.#countFor(ALL)
    this.#countFor(challenge)
    // The count of all came first of all and stays.
    const [, oldest] = this.#counts.size > MOST_TERMINALS ? this.#counts.keys() : []
    if (oldest !== undefined) this.#counts.delete(oldest)
  }

  #countFor(key: string | typeof ALL): void {
    const now = this.#clock.elapsed()
    const { wrong, pausedUntil } = this.#counts.get(key) ?? { wrong: [], pausedUntil: 0 }
    if (now < pausedUntil) return
    const recent = [...wrong.filter((at) => at > now - WINDOW_MS), now]
    const isOver = recent.length >= MOST
    this.#counts.set(
      key,
      isOver ? { wrong: [], pausedUntil: now + PAUSE_MS } : { wrong: recent, pausedUntil },
    )
  }
}
