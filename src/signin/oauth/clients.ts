import { timingSafeEqual } from 'node:crypto'
import { asc, count, eq, isNotNull, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import type { ClientMetadata } from './client-metadata.ts'
import type { ClientCredentials } from './parameters.ts'
import { OAuthProblem } from './problem.ts'
import { lastExpiry, NEW_CLIENT_MS, oauthClients, removeExpired, UNUSED_CLIENT_MS } from './table.ts'

/** Largest number of registered clients. @bound page */
const MAX_CLIENTS = 1_000

/** The error for an unknown client, which asks it to register. */
export const UNREGISTERED = 'No such client is registered here, or not any more. Register it again.'

/** A registered client. */
export interface OAuthClient {
  readonly id: string
  readonly metadata: ClientMetadata
}

/** A newly registered client. */
export interface RegisteredClient extends OAuthClient {
  /** Sent only once; null for a public client. */
  readonly secret: string | null
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** Dependencies of the client registry. */
interface ClientsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** Returns the ids of clients on open consent pages. */
  pendingClients: () => ReadonlySet<string>
}

/** Programs that registered in order to ask for access (RFC 7591). */
export class OAuthClients {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #pendingClients: () => ReadonlySet<string>

  constructor({ queries, clock, ids, pendingClients }: ClientsDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#pendingClients = pendingClients
  }

  /**
   * Registers a client. Anybody may register, so a full registry drops the client that would expire first.
   *
   * @throws OAuthProblem 503 if every client is in use
   */
  register(metadata: ClientMetadata): RegisteredClient {
    return this.#queries.transaction(() => {
      const now = this.#clock.now()
      removeExpired(this.#queries, now)
      this.#evictUnused()
      const id = this.#ids.next('client', (id) => this.#row(id) !== undefined)
      const secret =
        metadata.token_endpoint_auth_method === 'none' ? null : newSecret(systemRandom, 'berth_cs_')
      const secretHash = secret === null ? null : hashOf(secret)
      const row = { id, metadata, secretHash, createdAt: now, expiresAt: now + NEW_CLIENT_MS }
      this.#queries.insert(oauthClients).values(row).run()
      return { id, metadata, secret, createdAt: now }
    })
  }

  /** Returns a client, or null if it is unknown or expired. */
  find(id: string): OAuthClient | null {
    return this.#live(id) ?? null
  }

  /**
   * Returns the client that these credentials authenticate. A secret is accepted both in the header and in the form:
   * many hosts register one method and use the other, and RFC 6749, section 2.3.1, allows both.
   *
   * @throws OAuthProblem 401 `invalid_client` (RFC 6749, section 5.2)
   */
  authenticate({ clientId, secret, isBasic }: ClientCredentials): OAuthClient {
    const client = this.#live(clientId)
    const fault = secretFault(client, secret)
    if (client && fault === null) return client
    throw new OAuthProblem(
      'invalid_client',
      fault ?? UNREGISTERED,
      401,
      isBasic ? { 'www-authenticate': 'Basic realm="berth"' } : {},
    )
  }

  #row(id: string): typeof oauthClients.$inferSelect | undefined {
    return this.#queries.select().from(oauthClients).where(eq(oauthClients.id, id)).get()
  }

  #live(id: string): typeof oauthClients.$inferSelect | undefined {
    const row = this.#row(id)
    const expiresAt = row?.expiresAt ?? this.#expiryOf(id)
    return expiresAt > this.#clock.now() ? row : undefined
  }

  /** Returns when a client with grants would expire, in milliseconds since 1970. */
  #expiryOf(id: string): number {
    const [found] = this.#queries.all<{ at: number | null }>(sql`SELECT ${lastExpiry(id)} AS at`)
    return (found?.at ?? 0) + UNUSED_CLIENT_MS
  }

  #evictUnused(): void {
    const kept = this.#queries.select({ n: count() }).from(oauthClients).get()?.n ?? 0
    if (kept < MAX_CLIENTS) return
    const asked = this.#pendingClients()
    const oldest = this.#queries
      .select({ id: oauthClients.id })
      .from(oauthClients)
      .where(isNotNull(oauthClients.expiresAt))
      .orderBy(asc(oauthClients.expiresAt), asc(oauthClients.id))
      .limit(asked.size + 1)
      .all()
      .find(({ id }) => !asked.has(id))
    if (!oldest) {
      throw new OAuthProblem(
        'temporarily_unavailable',
        `${MAX_CLIENTS} clients are let in already. End the access of some of them on the page /access.`,
        503,
      )
    }
    this.#queries.delete(oauthClients).where(eq(oauthClients.id, oldest.id)).run()
  }
}

/** Returns a sentence about a client's wrong secret; null if it is correct or there is no client. */
function secretFault(
  client: Pick<typeof oauthClients.$inferSelect, 'secretHash'> | undefined,
  secret: string | null,
): string | null {
  if (!client) return null
  if (client.secretHash === null)
    return secret === null ? null : 'The client registered without a secret. Send only its client_id.'
  if (secret === null)
    return 'The client has a secret. Send it by HTTP Basic, or in the form as client_secret.'
  return timingSafeEqual(client.secretHash, hashOf(secret)) ? null : 'The secret is not that of the client.'
}
