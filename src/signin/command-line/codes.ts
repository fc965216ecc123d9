import type { Clock } from '../../runtime/clock.ts'
import { isVerifierOf } from '../../runtime/pkce.ts'
import type { Random } from '../../runtime/random.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'

/** What a person approved. */
export interface Approval {
  accountId: string
  /** Of the browser: what it approved counts as long as it is signed in. */
  sessionId: string
  /** Of the key that is to be made. */
  label: string
  /** S256 of the verifier that the terminal keeps (RFC 7636, 4.2). */
  challenge: string
}

/** A code is valid for so long, by the clock. */
export const CODE_MS = 2 * 60_000

/** Crockford's alphabet: I, L, O and U are missing, which are read as others or make words. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Letters of a code, of five bits each, */
const LENGTH = 12

/** shown in groups of so many. */
const GROUP = 4

/**
 * The codes that a terminal exchanges for a key: valid once and for two minutes, for whoever knows the verifier of
 * the challenge that the terminal came with.
 */
export class LoginCodes {
  readonly #random: Random
  readonly #waiting: OneTimeSecrets<Approval>

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#random = random
    this.#waiting = new OneTimeSecrets(clock)
  }

  /** A code for what was approved, as in `7K3M-Q9ZT-0VHX`. */
  issue(approval: Approval): string {
    const letters = Array.from(this.#random.bytes(LENGTH), (byte) => LETTERS[byte % LETTERS.length]).join('')
    this.#waiting.keep(letters, approval, approval.accountId, CODE_MS)
    return letters.match(new RegExp(`.{${GROUP}}`, 'g'))?.join('-') ?? letters
  }

  /**
   * Uses a code up, whoever sends it.
   *
   * @param code as it was shown or typed: case, spaces and dashes mean nothing
   * @returns null where it is none, was used, has expired, or the verifier is not that of its challenge
   */
  redeem(code: string, verifier: string): Approval | null {
    const approval = this.#waiting.take(lettersOf(code))
    return approval && isVerifierOf(verifier, approval.challenge) ? approval : null
  }
}

/** The letters that a person meant. */
const lettersOf = (typed: string): string =>
  typed.toUpperCase().replace(/[\s-]/g, '').replace(/[IL]/g, '1').replaceAll('O', '0')
