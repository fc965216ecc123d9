import { LINK_PATH } from '../../http/secret-path.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'

/** The effect of a link. */
interface LinkTarget {
  /** The account that it signs in; null for the first account. */
  accountId: string | null
  /** Path of this instance to redirect to; by default the default page. */
  returnTo?: string
}

/**
 * Links that sign a browser in, each once. They outlive a reset of the state, so the link that the start printed
 * still leads to the first account.
 */
export class SignInLinks {
  readonly #random: Random
  readonly #waiting: OneTimeSecrets<LinkTarget>

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#random = random
    this.#waiting = new OneTimeSecrets(clock)
  }

  /**
   * Creates a link that works once.
   *
   * @param lifetimeMs measured by the clock
   * @returns its path, which is a credential
   */
  issue(target: LinkTarget, lifetimeMs: number): { path: string; expiresAt: number } {
    const secret = newSecret(this.#random)
    const expiresAt = this.#waiting.keep(secret, target, target.accountId ?? '', lifetimeMs)
    return { path: `${LINK_PATH}${secret}`, expiresAt }
  }

  /**
   * Uses up a link.
   *
   * @returns null if it is unknown, used or expired
   */
  redeem(secret: string): LinkTarget | null {
    return this.#waiting.take(secret)
  }
}
