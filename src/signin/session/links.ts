import { LINK_PATH } from '../../http/secret-path.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'

/** What a link leads to. */
export interface LinkTarget {
  /** Whom it signs in; null for the first account. */
  accountId: string | null
  /** Where the browser goes then, a path of this instance; else to the page that all begin with. */
  returnTo?: string
}

/**
 * Links that sign a browser in, each once. They outlive a reset of the state: the one that the start has printed goes on
 * to lead to the first account.
 */
export class SignInLinks {
  readonly #random: Random
  readonly #waiting: OneTimeSecrets<LinkTarget>

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#random = random
    this.#waiting = new OneTimeSecrets(clock)
  }

  /**
   * Makes a link that is valid once.
   *
   * @param lifetimeMs by the clock
   * @returns its path, which is a credential
   */
  issue(target: LinkTarget, lifetimeMs: number): { path: string; expiresAt: number } {
    const secret = newSecret(this.#random)
    const expiresAt = this.#waiting.keep(secret, target, target.accountId ?? '', lifetimeMs)
    return { path: `${LINK_PATH}${secret}`, expiresAt }
  }

  /** Uses a link up. @returns null where it is none, was used or has expired */
  redeem(secret: string): LinkTarget | null {
    return this.#waiting.take(secret)
  }
}
