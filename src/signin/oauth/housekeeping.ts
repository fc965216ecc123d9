import { and, type Column, eq, isNotNull, isNull, lte, notExists, type SQL, sql } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { oauthClients, oauthCodes, oauthGrants, oauthTokens } from './table.ts'

/** A client that nobody has let in is kept so long. */
export const STRANGER_MS = 24 * 3_600_000

/**
 * One that nobody lets in any more is kept so long: hosts go on using what they once registered, and not all of them
 * register again where it is gone.
 */
export const KNOWN_MS = 30 * 24 * 3_600_000

/** When the last code or token of a client expires, in milliseconds since 1970; null where it has none. */
export function lastExpiry(clientId: string | Column): SQL<number | null> {
  const grants = sql`(SELECT ${oauthGrants.id} FROM ${oauthGrants} WHERE ${oauthGrants.clientId} = ${clientId})`
  const last = (table: typeof oauthCodes | typeof oauthTokens) =>
    sql`SELECT max(${table.expiresAt}) AS at FROM ${table} WHERE ${table.grantId} IN ${grants}`
  return sql`(SELECT max(at) FROM (${last(oauthCodes)} UNION ALL ${last(oauthTokens)}))`
}

/**
 * Removes what has expired: codes, tokens, grants that none of these is left of, and clients that nobody lets in. Run
 * whenever something new is written, inside its transaction, so that what lies here is bounded by what is in use.
 */
export function removeExpired(queries: Queries, now: number): void {
  // Before what tells when they ended is gone.
  queries
    .update(oauthClients)
    .set({ expiresAt: sql`coalesce(${lastExpiry(oauthClients.id)}, ${now}) + ${KNOWN_MS}` })
    .where(and(isNull(oauthClients.expiresAt), sql`coalesce(${lastExpiry(oauthClients.id)}, 0) <= ${now}`))
    .run()
  queries.delete(oauthCodes).where(lte(oauthCodes.expiresAt, now)).run()
  queries.delete(oauthTokens).where(lte(oauthTokens.expiresAt, now)).run()
  const codes = queries.select({ one: sql`1` }).from(oauthCodes).where(eq(oauthCodes.grantId, oauthGrants.id))
  const tokens = queries
    .select({ one: sql`1` })
    .from(oauthTokens)
    .where(eq(oauthTokens.grantId, oauthGrants.id))
  queries
    .delete(oauthGrants)
    .where(and(notExists(codes), notExists(tokens)))
    .run()
  queries
    .delete(oauthClients)
    .where(and(isNotNull(oauthClients.expiresAt), lte(oauthClients.expiresAt, now)))
    .run()
}
