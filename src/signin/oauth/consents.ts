import type { Clock } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'
import type { BrowserSession } from '../session/sessions.ts'
import type { AuthorizationRequest } from './authorization-request.ts'

/** Milliseconds that a consent page stays open. */
const CONSENT_MS = 10 * 60_000

interface PendingConsent {
  sessionId: string
  request: AuthorizationRequest
}

/**
 * The requests on open consent pages. The form of a page contains a handle that is valid once, for the session that
 * was shown the page. So a person grants exactly the request on the page.
 */
export class Consents {
  readonly #pending: OneTimeSecrets<PendingConsent>

  constructor(clock: Clock) {
    this.#pending = new OneTimeSecrets(clock)
  }

  /**
   * Stores the request that a page shows.
   *
   * @returns the handle for its form
   */
  open({ id, accountId }: Pick<BrowserSession, 'id' | 'accountId'>, request: AuthorizationRequest): string {
    const handle = newSecret(systemRandom)
    this.#pending.keep(handle, { sessionId: id, request }, accountId, CONSENT_MS)
    return handle
  }

  /**
   * Returns the request that a page showed to the session; null if there is none, or the page was used or has
   * expired.
   */
  find(handle: string, sessionId: string): AuthorizationRequest | null {
    const pending = this.#pending.find(handle)
    return pending?.sessionId === sessionId ? pending.request : null
  }

  /** Closes a page whose decision was received. */
  close(handle: string): void {
    this.#pending.take(handle)
  }

  /** Returns the ids of clients on open pages. */
  pendingClients(): ReadonlySet<string> {
    return new Set(this.#pending.values().map(({ request }) => request.client.id))
  }
}
