import type { Clock } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'
import type { Session } from '../session/sessions.ts'
import type { AuthorizationRequest } from './authorization-request.ts'

/** A person may look at a consent page so long before answering. */
const CONSENT_MS = 10 * 60_000

interface Pending {
  sessionId: string
  request: AuthorizationRequest
}

/**
 * What consent pages asked for. A page's form carries a handle, good for one answer of the session that was shown the
 * page: what is granted is what was shown, and nothing is granted that was not.
 */
export class Consents {
  readonly #waiting: OneTimeSecrets<Pending>

  constructor(clock: Clock) {
    this.#waiting = new OneTimeSecrets(clock)
  }

  /** Notes what a page asks for. @returns the handle for its form */
  ask({ id, accountId }: Pick<Session, 'id' | 'accountId'>, request: AuthorizationRequest): string {
    const handle = newSecret(systemRandom)
    this.#waiting.keep(handle, { sessionId: id, request }, accountId, CONSENT_MS)
    return handle
  }

  /** What a page of the session asked for, or null where it did not, was answered or waited too long. */
  find(handle: string, sessionId: string): AuthorizationRequest | null {
    const pending = this.#waiting.find(handle)
    return pending?.sessionId === sessionId ? pending.request : null
  }

  /** The page was answered. */
  close(handle: string): void {
    this.#waiting.take(handle)
  }

  /** The clients that open pages are about. */
  askedClients(): ReadonlySet<string> {
    return new Set(this.#waiting.values().map(({ request }) => request.client.id))
  }
}
