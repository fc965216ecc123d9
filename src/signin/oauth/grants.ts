import { and, desc, eq, exists, gt, isNull, type SQL, sql } from 'drizzle-orm'
import { notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { CredentialChanges } from '../../http/credential-changes.ts'
import { LastUse } from '../../resources/accounts/last-use.ts'
import type { Changes } from '../../resources/changes/types.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import { hashOf } from '../../runtime/secret.ts'
import { type Database, type Queries, ReadCache } from '../../storage/database.ts'
import { originOfResource } from './resource.ts'
import { clientName, oauthClients, oauthGrants, oauthTokens, removeExpired } from './table.ts'

/** The prefix of access tokens. No API key has it. */
export const ACCESS_TOKEN_PREFIX = 'berth_at_'

/** Reports whether a credential has the form of an access token. */
export const isAccessToken = (credential: string): boolean => credential.startsWith(ACCESS_TOKEN_PREFIX)

/** A client that has access to an account. */
export interface GrantView {
  id: string
  clientId: string
  /** The name that the client chose. It proves nothing. */
  clientName: string
  /** Destinations of its codes. */
  redirectUris: string[]
  /** Empty means all servers of the account. */
  allowedServerIds: string[]
  allowedProjectIds: string[]
  /** Milliseconds since 1970. */
  createdAt: number
  lastUsedAt: number | null
}

/** Dependencies of the grants. */
interface GrantsDependencies {
  database: Database
  clock: Clock
  logger: Logger
  credentialChanges: CredentialChanges
  changes: Changes
}

/** An access token, as read from the database. */
interface FoundToken {
  caller: Caller
  /** The origin at which it is valid. */
  origin: string
  expiresAt: number
  lastUsedAt: number | null
}

/**
 * The grants of people to clients. Authenticates access tokens, lists the clients of an account and revokes their
 * access.
 */
export class Grants {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #lastUse: LastUse
  readonly #credentialChanges: CredentialChanges
  readonly #changes: Changes
  readonly #found: ReadCache<FoundToken | null>
  readonly #byHash

  constructor({ database, clock, logger, credentialChanges, changes }: GrantsDependencies) {
    const { queries, version } = database
    this.#queries = queries
    this.#clock = clock
    this.#lastUse = new LastUse({ queries, clock, logger, table: oauthGrants })
    this.#credentialChanges = credentialChanges
    this.#changes = changes
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
   * Returns the caller of an access token; null if it is unknown, expired or for another origin.
   *
   * @param origin the origin at which the token arrived: it is valid only there (RFC 8707, 2)
   */
  authenticate(token: string, origin: string): Caller | null {
    const hash = hashOf(token)
    const found = this.#found.get(hash.toString('base64'), () => this.#read(hash))
    if (!found || found.expiresAt <= this.#clock.now() || found.origin !== origin) return null
    const { credentialId, accountId } = found.caller
    if (this.#lastUse.note(credentialId, found.lastUsedAt))
      this.#changes.notify('program', credentialId, accountId)
    return found.caller
  }

  /**
   * Lists the clients that have access to an account, newest first. A grant whose code was never exchanged does not
   * count.
   */
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
      clientName: clientName(metadata),
      redirectUris: metadata.redirect_uris,
      allowedServerIds: grant.allowedServerIds,
      allowedProjectIds: grant.allowedProjectIds,
      createdAt: grant.createdAt,
      lastUsedAt: this.#lastUse.at(grant.id, grant.lastUsedAt),
    }))
  }

  /**
   * Revokes all grants of an account to the client of a grant, including pending codes.
   *
   * @returns the client's name
   * @throws BerthError 404
   */
  revoke(accountId: string, id: string): string {
    const found = this.#queries
      .select({ clientId: oauthGrants.clientId, metadata: oauthClients.metadata })
      .from(oauthGrants)
      .innerJoin(oauthClients, eq(oauthClients.id, oauthGrants.clientId))
      .where(and(eq(oauthGrants.id, id), eq(oauthGrants.accountId, accountId)))
      .get()
    if (!found) throw notFound(`The program "${id}"`)
    this.#delete(and(eq(oauthGrants.accountId, accountId), eq(oauthGrants.clientId, found.clientId)))
    return clientName(found.metadata)
  }

  /** Notifies that a grant has tokens for the first time: it is listed from now on. */
  notifyIssued({ id, accountId }: { id: string; accountId: string }): void {
    this.#changes.notify('program', id, accountId)
  }

  /** Revokes a grant of any account, with all its tokens. */
  end(id: string): void {
    this.#delete(eq(oauthGrants.id, id))
  }

  /** Revokes every grant of an account. */
  revokeAll(accountId: string): void {
    this.#delete(eq(oauthGrants.accountId, accountId))
  }

  /** Reports whether the scope of a grant names a server or a project, even if that was deleted. */
  hasScopeFor(id: string): boolean {
    const lists = sql`${oauthGrants.allowedServerIds} || ${oauthGrants.allowedProjectIds}`
    const named = sql`instr(${lists}, ${JSON.stringify(id)}) > 0`
    const found = this.#queries.select({ id: oauthGrants.id }).from(oauthGrants).where(named)
    return found.limit(1).get() !== undefined
  }

  /** Writes pending times of use. */
  stop(): void {
    this.#lastUse.flush()
  }

  /** Deletes grants with all their tokens. Clients without grants start to expire. */
  #delete(which: SQL | undefined): void {
    const ended = this.#queries.transaction(() => {
      const ended = this.#queries
        .delete(oauthGrants)
        .where(which)
        .returning({ id: oauthGrants.id, accountId: oauthGrants.accountId })
        .all()
      removeExpired(this.#queries, this.#clock.now())
      return ended
    })
    for (const { id, accountId } of ended) {
      this.#lastUse.forget(id)
      this.#credentialChanges.notify(id)
      this.#changes.notify('program', id, accountId)
    }
  }

  /** Selects grants that have a valid token. */
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

  #read(hash: Buffer): FoundToken | null {
    const row = this.#byHash().get({ hash })
    // The index lookup leaks the first differing byte through its timing. This comparison leaks nothing more.
    if (!row || !crypto.timingSafeEqual(row.hash, hash)) return null
    const { id: credentialId, accountId, resource, expiresAt, lastUsedAt } = row
    const scope = { servers: setOf(row.serverIds), projects: setOf(row.projectIds) }
    const caller = { accountId, credentialId, ...scope }
    return { caller, origin: originOfResource(resource), expiresAt, lastUsedAt }
  }
}

const setOf = (list: readonly string[]): ReadonlySet<string> | null =>
  list.length === 0 ? null : new Set(list)
