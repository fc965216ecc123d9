import type { Clock } from '../../runtime/clock.ts'
import { isVerifierOf } from '../../runtime/pkce.ts'
import type { Random } from '../../runtime/random.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'

/** A person's approval of a login. */
interface LoginApproval {
  accountId: string
  /** The browser's session. The approval is valid only while it is signed in. */
  sessionId: string
  /** The label of the key to create. */
  label: string
  /** S256 of the verifier that the terminal keeps (RFC 7636, 4.2). */
  challenge: string
}

/** Milliseconds that a code is valid. */
export const CODE_MS = 2 * 60_000

/**
 * Crockford's Base32 alphabet. It leaves out I, L, O and U, which are mistaken for other characters or make words.
 */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Letters of a code, five bits each. */
const LENGTH = 12

/** Letters in each group of a printed code. */
const GROUP = 4

/**
 * Codes that a terminal exchanges for a key. A code works once, for two minutes, and only with the verifier of the
 * terminal's challenge.
 */
export class LoginCodes {
  readonly #random: Random
  readonly #waiting: OneTimeSecrets<LoginApproval>

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#random = random
    this.#waiting = new OneTimeSecrets(clock)
  }

  /** Issues a code for an approval, as in `7K3M-Q9ZT-0VHX`. */
  issue(approval: LoginApproval): string {
    const letters = Array.from(this.#random.bytes(LENGTH), (byte) => LETTERS[byte % LETTERS.length]).join('')
    this.#waiting.keep(letters, approval, approval.accountId, CODE_MS)
    return letters.match(new RegExp(`.{${GROUP}}`, 'g'))?.join('-') ?? letters
  }

  /**
   * Uses up a code, whether or not the verifier fits.
   *
   * @param code as printed or typed: case, spaces and dashes are ignored
   * @returns null if the code is unknown, used or expired, or if the verifier does not fit its challenge
   */
  redeem(code: string, verifier: string): LoginApproval | null {
    const approval = this.#waiting.take(lettersOf(code))
    return approval && isVerifierOf(verifier, approval.challenge) ? approval : null
  }
}

/** Returns the letters of a typed code, with lookalikes replaced. */
const lettersOf = (typed: string): string =>
  typed.toUpperCase().replace(/[\s-]/g, '').replace(/[IL]/g, '1').replaceAll('O', '0')

/** Wrong codes that are allowed within `WINDOW_MS`. People make a few typing errors. @bound page */
const MAX_WRONG = 10

/** Milliseconds for which a wrong code counts. */
const WINDOW_MS = 60_000

/** Milliseconds for which every code is refused after too many wrong ones. */
const PAUSE_MS = 60_000

/** Number of terminals to count. Beyond that, the oldest count is dropped. @bound page */
const MAX_TERMINALS = 1_000

/** Identifies all terminals together. */
const ALL_TERMINALS = Symbol('all')

interface WrongCount {
  /** Times of wrong codes in milliseconds of `elapsed`, oldest first. */
  wrong: number[]
  pausedUntil: number
}

/**
 * Limits how often codes can be guessed. It measures elapsed time, so setting the clock lifts no limit. Each
 * terminal, identified by the challenge of its codes, has its own limit: guesses from elsewhere lock nobody out.
 */
export class GuessLimiter {
  readonly #clock: Clock
  readonly #counts = new Map<string | typeof ALL_TERMINALS, WrongCount>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Returns the seconds, rounded up, until codes are accepted again; 0 if they are now.
   *
   * @param challenge of one terminal; all together if left out
   */
  secondsToWait(challenge: string | typeof ALL_TERMINALS = ALL_TERMINALS): number {
    const until = this.#counts.get(challenge)?.pausedUntil ?? 0
    return Math.max(0, Math.ceil((until - this.#clock.elapsed()) / 1_000))
  }

  /** Counts a wrong code of a terminal. */
  countWrong(challenge: string): void {
    this.#countFor(ALL_TERMINALS)
    this.#countFor(challenge)
    // The count of all terminals was added first and must stay.
    const [, oldest] = this.#counts.size > MAX_TERMINALS ? this.#counts.keys() : []
    if (oldest !== undefined) this.#counts.delete(oldest)
  }

  #countFor(key: string | typeof ALL_TERMINALS): void {
    const now = this.#clock.elapsed()
    const { wrong, pausedUntil } = this.#counts.get(key) ?? { wrong: [], pausedUntil: 0 }
    if (now < pausedUntil) return
    const recent = [...wrong.filter((at) => at > now - WINDOW_MS), now]
    const isOver = recent.length >= MAX_WRONG
    this.#counts.set(
      key,
      isOver ? { wrong: [], pausedUntil: now + PAUSE_MS } : { wrong: recent, pausedUntil },
    )
  }
}
