import type { Masks } from '../../runtime/masks.ts'

/** Secrets that are learned; more are still masked where their name or pattern shows them. @bound program */
const MOST_LEARNED = 4_000

/** Fewest characters of a secret that is learned: a word of a text is shorter, or has no digit. */
const SHORTEST = { withDigit: 8, any: 20 }

/**
 * Hides the credentials of a run that are found in one place in all others too, also encoded: a key in the header of a request is
 * no longer shown as base64 in the log of an app.
 */
export class LearnedSecrets {
  readonly #masks: Masks
  readonly #learned = new Set<string>()

  constructor(masks: Masks) {
    this.#masks = masks
  }

  /** Takes a credential. Of a user with a password, as URLs and basic authentication have it, the password is one. */
  readonly learn = (found: string): void => {
    if (this.#learned.has(found) || this.#learned.size >= MOST_LEARNED) return
    this.#learned.add(found)
    const values = [found, passwordOf(found), passwordOf(Buffer.from(found, 'base64').toString())]
    this.#masks.add(values.filter((value) => value !== null).filter(isDistinct))
  }
}

/** Returns the password of `user:password`; null for another text. */
function passwordOf(text: string): string | null {
  const [, password] = /^[\x21-\x39\x3b-\x7e]{0,256}:([\x21-\x7e]{1,256})$/.exec(text) ?? []
  return password ?? null
}

/** Reports whether a text is hardly a part of another one by chance. */
const isDistinct = (text: string): boolean =>
  text.length >= SHORTEST.any || (text.length >= SHORTEST.withDigit && /\d/.test(text))
