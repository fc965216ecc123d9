import { timingSafeEqual } from 'node:crypto'
import { asc, count, eq, isNotNull, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import type { ClientCredentials } from './client-credentials.ts'
import type { ClientMetadata } from './client-metadata.ts'
import { KNOWN_MS, lastExpiry, removeExpired, STRANGER_MS } from './housekeeping.ts'
import { OAuthProblem } from './problem.ts'
import { oauthClients } from './table.ts'

/** Clients that are kept at most. */
const MOST_CLIENTS = 1_000

/** What a client is told that is none here, so that it registers. */
export const UNREGISTERED = 'No such client is registered here, or not any more. Register it again.'

/** A registered client. */
export interface Client {
  readonly id: string
  readonly metadata: ClientMetadata
}

/** A client that has just been registered. */
export interface Registered extends Client {
  /** Shown this once; null for a public client. */
  readonly secret: string | null
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** What clients need. */
interface ClientsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** The clients that somebody is being asked to let in. */
  asked: () => ReadonlySet<string>
}

/** The programs that have registered to ask for access (RFC 7591). */
export class Clients {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #asked: () => ReadonlySet<string>

  constructor({ queries, clock, ids, asked }: ClientsDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#asked = asked
  }

  /**
   * Registers a client. Anybody may, so that where there are too many the one makes room that would be forgotten first.
   *
   * @throws OAuthProblem 503 where all of them are in use
   */
  register(metadata: ClientMetadata): Registered {
    return this.#queries.transaction(() => {
      const now = this.#clock.now()
      removeExpired(this.#queries, now)
      this.#makeRoom()
      const id = this.#ids.next('client', (id) => this.#row(id) !== undefined)
      const secret =
        metadata.token_endpoint_auth_method === 'none' ? null : newSecret(systemRandom, 'berth_cs_')
      const secretHash = secret === null ? null : hashOf(secret)
      const row = { id, metadata, secretHash, createdAt: now, expiresAt: now + STRANGER_MS }
      this.#queries.insert(oauthClients).values(row).run()
      return { id, metadata, secret, createdAt: now }
    })
  }

  /** The client of an id, or null where there is none any more. */
  find(id: string): Client | null {
    return this.#live(id) ?? null
  }

  /**
   * The client that shows these credentials. A secret counts in the header and in the form alike, whichever of the two was
   * registered: many a host registers one and does the other (RFC 6749, 2.3.1 lets a server take both).
   *
   * @throws OAuthProblem 401 `invalid_client` (RFC 6749, 5.2)
   */
  authenticate({ clientId, secret, isBasic }: ClientCredentials): Client {
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
    const expiresAt = row?.expiresAt ?? this.#endOf(id)
    return expiresAt > this.#clock.now() ? row : undefined
  }

  /** When a client is forgotten that was let in, as it stands now. */
  #endOf(id: string): number {
    const [found] = this.#queries.all<{ at: number | null }>(sql`SELECT ${lastExpiry(id)} AS at`)
    return (found?.at ?? 0) + KNOWN_MS
  }

  #makeRoom(): void {
    const kept = this.#queries.select({ n: count() }).from(oauthClients).get()?.n ?? 0
    if (kept < MOST_CLIENTS) return
    const asked = this.#asked()
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
        `${MOST_CLIENTS} clients are let in already. End the access of some of them on the page /access.`,
        503,
      )
    }
    this.#queries.delete(oauthClients).where(eq(oauthClients.id, oldest.id)).run()
  }
}

/** What is wrong with the secret that a client shows, as a sentence; null where nothing is, or there is no client. */
function secretFault(
  client: Pick<typeof oauthClients.$inferSelect, 'secretHash'> | undefined,
  secret: string | null,
): string | null {
  if (!client) return null
  if (client.secretHash === null)
    return secret === null ? null : 'The client registered without a secret. Send its client_id alone.'
  if (secret === null)
    return 'The client has a secret. Send it by HTTP Basic, or in the form as client_secret.'
  return timingSafeEqual(client.secretHash, hashOf(secret)) ? null : 'The secret is not that of the client.'
}
