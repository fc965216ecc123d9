import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'

/** Ended sessions that are remembered; they are told from those that berth never knew, which go on after a restart. */
const MOST_ENDED = 10_000

/** Who asks: a credential, in the session that it names. */
export interface Asker {
  readonly credentialId: string
  /** The Mcp-Session-Id header. */
  readonly session: string
}

/**
 * Sessions of clients that speak a protocol of 2025. Each request is answered by itself; a session is only the name by
 * which a client calls off a request that it sent before (MCP 2025-11-25, "Cancellation"), or says that it is done.
 * Clients of 2026-07-28 have none: they close the connection.
 */
export class Sessions {
  /** By session: the calls under way, each with the id of its request. A careless client gives several the same. */
  readonly #underWay = new Map<string, Map<() => void, string>>()
  /** Their hashes, since a client may send names of any length. */
  readonly #ended = new Set<string>()

  /** A name for a client that begins. */
  next(): string {
    return newSecret(systemRandom)
  }

  /** Remembers how a request is called off. Dispose of it when it is answered. */
  begin(asker: Asker, requestId: string | number, cancel: () => void): Disposable {
    const name = nameOf(asker)
    const id = JSON.stringify(requestId)
    const calls = this.#underWay.get(name) ?? new Map<() => void, string>()
    this.#underWay.set(name, calls.set(cancel, id))
    return {
      [Symbol.dispose]: () => {
        calls.delete(cancel)
        if (calls.size === 0 && this.#underWay.get(name) === calls) this.#underWay.delete(name)
      },
    }
  }

  /** Calls off a request of the same session, where it is under way. */
  cancel(asker: Asker, requestId: unknown): void {
    const meant = JSON.stringify(requestId)
    for (const [cancel, id] of [...(this.#underWay.get(nameOf(asker)) ?? [])]) if (id === meant) cancel()
  }

  /** The session is over, and all that it has under way. */
  end(asker: Asker): void {
    const name = nameOf(asker)
    for (const cancel of [...(this.#underWay.get(name)?.keys() ?? [])]) cancel()
    if (this.#ended.size >= MOST_ENDED) this.#ended.delete(this.#ended.values().next().value ?? '')
    this.#ended.add(tagOf(asker))
  }

  /** Whether a session has been ended. */
  isOver(asker: Asker): boolean {
    return this.#ended.size > 0 && this.#ended.has(tagOf(asker))
  }
}

/** A session belongs to one credential: nobody else calls anything of it off. */
const nameOf = ({ credentialId, session }: Asker): string => `${credentialId} ${session}`

/** The same at a fixed length. */
const tagOf = (asker: Asker): string => hashOf(nameOf(asker)).toString('base64url')
