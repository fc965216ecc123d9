import { and, desc, eq, exists, gt, isNull, type SQL, sql } from 'drizzle-orm'
import { notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { CredentialChanges } from '../../http/credential-changes.ts'
import { LastUse } from '../../resources/accounts/last-use.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import { hashOf } from '../../runtime/secret.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { ReadCache } from '../../storage/read-cache.ts'
import { nameOf } from './client-name.ts'
import { removeExpired } from './housekeeping.ts'
import { originOfResource } from './resource.ts'
import { oauthClients, oauthGrants, oauthTokens } from './table.ts'

/** What access tokens begin with: no API key does. */
export const ACCESS_TOKEN_PREFIX = 'berth_at_'

/** Whether a credential is an access token, by its form. */
export const isAccessToken = (credential: string): boolean => credential.startsWith(ACCESS_TOKEN_PREFIX)

/** A client that a person has let in. */
export interface GrantView {
  id: string
  clientId: string
  /** What the client calls itself; anybody may call themselves anything. */
  clientName: string
  /** Where its codes go. */
  redirectUris: string[]
  /** Empty means all of the account's. */
  allowedServerIds: string[]
  allowedProjectIds: string[]
  /** Milliseconds since 1970. */
  createdAt: number
  lastUsedAt: number | null
}

/** What grants need. */
interface GrantsDependencies {
  database: Database
  clock: Clock
  logger: Logger
  credentialChanges: CredentialChanges
}

/** A token that was found. */
interface Found {
  caller: Caller
  /** The origin of what it is for. */
  origin: string
  expiresAt: number
  lastUsedAt: number | null
}

/** What people have granted to clients: who a token speaks for, which clients are let in, and their end. */
export class Grants {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #lastUse: LastUse
  readonly #changes: CredentialChanges
  readonly #found: ReadCache<Found | null>
  readonly #byHash

  constructor({ database, clock, logger, credentialChanges }: GrantsDependencies) {
    const { queries, version } = database
    this.#queries = queries
    this.#clock = clock
    this.#lastUse = new LastUse({ queries, clock, logger, table: oauthGrants })
    this.#changes = credentialChanges
    this.#found = new ReadCache(version)
    this.#byHash = once(() =>
      queries
        .select({
          id: oauthGrants.id,
          accountId: oauthGrants.accountId,
          resource: oauthGrants.resource,
          serverIds: oauthGrants.allowedServerIds,
          projectIds: oauthGrants.allowedProjectIds,
          lastUsedAt: oauthGrants.lastUsedAt,
          hash: oauthTokens.hash,
          expiresAt: oauthTokens.expiresAt,
        })
        .from(oauthTokens)
        .innerJoin(oauthGrants, eq(oauthGrants.id, oauthTokens.grantId))
        .where(and(eq(oauthTokens.hash, sql.placeholder('hash')), eq(oauthTokens.kind, 'access')))
        .prepare(),
    )
  }

  /**
   * The caller behind an access token, or null where it is none of ours, has expired or is for something else.
   *
   * @param origin where the token came in: it counts there alone (RFC 8707, 2)
   */
  authenticate(token: string, origin: string): Caller | null {
    const hash = hashOf(token)
    const found = this.#found.get(hash.toString('base64'), () => this.#read(hash))
    if (!found || found.expiresAt <= this.#clock.now() || found.origin !== origin) return null
    this.#lastUse.note(found.caller.credentialId, found.lastUsedAt)
    return found.caller
  }

  /** The clients that an account has let in, newest first. A grant whose code was never exchanged is none. */
  list(accountId: string): GrantView[] {
    const rows = this.#queries
      .select({ grant: oauthGrants, metadata: oauthClients.metadata })
      .from(oauthGrants)
      .innerJoin(oauthClients, eq(oauthClients.id, oauthGrants.clientId))
      .where(and(eq(oauthGrants.accountId, accountId), this.#isLive()))
      .orderBy(desc(oauthGrants.createdAt), desc(oauthGrants.id))
      .all()
    return rows.map(({ grant, metadata }) => ({
      id: grant.id,
      clientId: grant.clientId,
      clientName: nameOf(metadata),
      redirectUris: metadata.redirect_uris,
      allowedServerIds: grant.allowedServerIds,
      allowedProjectIds: grant.allowedProjectIds,
      createdAt: grant.createdAt,
      lastUsedAt: this.#lastUse.at(grant.id, grant.lastUsedAt),
    }))
  }

  /**
   * Ends what an account has granted to the client of a grant, codes that wait as well.
   *
   * @returns what the client calls itself
   * @throws BerthError 404
   */
  revoke(accountId: string, id: string): string {
    const found = this.#queries
      .select({ clientId: oauthGrants.clientId, metadata: oauthClients.metadata })
      .from(oauthGrants)
      .innerJoin(oauthClients, eq(oauthClients.id, oauthGrants.clientId))
      .where(and(eq(oauthGrants.id, id), eq(oauthGrants.accountId, accountId)))
      .get()
    if (!found) throw notFound(`The sign-in "${id}"`)
    this.#delete(and(eq(oauthGrants.accountId, accountId), eq(oauthGrants.clientId, found.clientId)))
    return nameOf(found.metadata)
  }

  /** Ends a grant, whosever it is, with all its tokens at once. */
  end(id: string): void {
    this.#delete(eq(oauthGrants.id, id))
  }

  /** Ends every grant of an account at once. */
  revokeAll(accountId: string): void {
    this.#delete(eq(oauthGrants.accountId, accountId))
  }

  /** Whether a grant names a server of this id, be it there or gone. */
  names(serverId: string): boolean {
    const named = sql`instr(${oauthGrants.allowedServerIds}, ${JSON.stringify(serverId)}) > 0`
    const found = this.#queries.select({ id: oauthGrants.id }).from(oauthGrants).where(named)
    return found.limit(1).get() !== undefined
  }

  /** Writes what waits to be written. */
  stop(): void {
    this.#lastUse.flush()
  }

  /** Deletes grants with all their tokens; from now on the time runs of clients that nobody lets in any more. */
  #delete(which: SQL | undefined): void {
    const ended = this.#queries.transaction(() => {
      const ended = this.#queries.delete(oauthGrants).where(which).returning({ id: oauthGrants.id }).all()
      removeExpired(this.#queries, this.#clock.now())
      return ended
    })
    for (const { id } of ended) {
      this.#lastUse.forget(id)
      this.#changes.changed(id)
    }
  }

  /** It has a token that opens something yet. */
  #isLive() {
    return exists(
      this.#queries
        .select({ one: sql`1` })
        .from(oauthTokens)
        .where(
          and(
            eq(oauthTokens.grantId, oauthGrants.id),
            gt(oauthTokens.expiresAt, this.#clock.now()),
            isNull(oauthTokens.replacedAt),
          ),
        ),
    )
  }

  #read(hash: Buffer): Found | null {
    const row = this.#byHash().get({ hash })
    // The index has compared already, up to the first byte that differs; this one tells no timing.
    if (!row || !crypto.timingSafeEqual(row.hash, hash)) return null
    const { id: credentialId, accountId, resource, expiresAt, lastUsedAt } = row
    const scope = { servers: setOf(row.serverIds), projects: setOf(row.projectIds) }
    const caller = { accountId, credentialId, ...scope }
    return { caller, origin: originOfResource(resource), expiresAt, lastUsedAt }
  }
}

const setOf = (list: readonly string[]): ReadonlySet<string> | null =>
  list.length === 0 ? null : new Set(list)
