import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'

/**
 * Number of ended sessions to remember. Berth accepts unknown session names, so clients can continue after a restart.
 * @bound client
 */
const MAX_ENDED = 10_000

/** Identifies a session: the credential that uses it, and its name. */
interface McpSession {
  readonly credentialId: string
  /** The Mcp-Session-Id header. */
  readonly session: string
}

/**
 * Holds the sessions of clients that speak a protocol version of 2025. Each request is handled independently. A
 * client uses its session only to cancel a request that it sent before (MCP 2025-11-25, "Cancellation") and to end
 * the session. Clients of 2026-07-28 have no sessions: they close the connection.
 */
export class McpSessions {
  /**
   * The running calls of each session, each with the JSON of its request's id. A careless client may use an id twice.
   */
  readonly #running = new Map<string, Map<() => void, string>>()
  /** Hashes, because a client may send names of any length. */
  readonly #ended = new Set<string>()

  /** Makes a name for a new session. */
  newName(): string {
    return newSecret(systemRandom)
  }

  /** Registers how to cancel a request. Dispose of the result when the request is done. */
  begin(session: McpSession, requestId: string | number, cancel: () => void): Disposable {
    const name = nameOf(session)
    const id = JSON.stringify(requestId)
    const calls = this.#running.get(name) ?? new Map<() => void, string>()
    this.#running.set(name, calls.set(cancel, id))
    return {
      [Symbol.dispose]: () => {
        calls.delete(cancel)
        if (calls.size === 0 && this.#running.get(name) === calls) this.#running.delete(name)
      },
    }
  }

  /** Cancels a request of the same session if it is still running. */
  cancel(session: McpSession, requestId: unknown): void {
    const meant = JSON.stringify(requestId)
    for (const [cancel, id] of [...(this.#running.get(nameOf(session)) ?? [])]) if (id === meant) cancel()
  }

  /** Ends a session and cancels its running requests. */
  end(session: McpSession): void {
    const name = nameOf(session)
    for (const cancel of [...(this.#running.get(name)?.keys() ?? [])]) cancel()
    if (this.#ended.size >= MAX_ENDED) this.#ended.delete(this.#ended.values().next().value ?? '')
    this.#ended.add(tagOf(session))
  }

  /** Reports whether a session has been ended. */
  isEnded(session: McpSession): boolean {
    return this.#ended.size > 0 && this.#ended.has(tagOf(session))
  }
}

/** Binds a session to its credential, so no other credential can cancel its requests. */
const nameOf = ({ credentialId, session }: McpSession): string => `${credentialId} ${session}`

/** Hashes the same to a fixed length. */
const tagOf = (session: McpSession): string => hashOf(nameOf(session)).toString('base64url')
