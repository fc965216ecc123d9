import { and, type Column, eq, isNotNull, isNull, lte, notExists, type SQL, sql } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { oauthClients, oauthCodes, oauthGrants, oauthTokens } from './table.ts'

/** Milliseconds that a client without any grant is kept. */
export const NEW_CLIENT_MS = 24 * 3_600_000

/**
 * Milliseconds that a client is kept after its last grant. Hosts keep their registration, and not all of them
 * register again if it is gone.
 */
export const UNUSED_CLIENT_MS = 30 * 24 * 3_600_000

/** Returns when the last code or token of a client expires, in milliseconds since 1970; null if it has none. */
export function lastExpiry(clientId: string | Column): SQL<number | null> {
  const grants = sql`(SELECT ${oauthGrants.id} FROM ${oauthGrants} WHERE ${oauthGrants.clientId} = ${clientId})`
  const last = (table: typeof oauthCodes | typeof oauthTokens) =>
    sql`SELECT max(${table.expiresAt}) AS at FROM ${table} WHERE ${table.grantId} IN ${grants}`
  return sql`(SELECT max(at) FROM (${last(oauthCodes)} UNION ALL ${last(oauthTokens)}))`
}

/**
 * Removes expired codes and tokens, grants without either, and expired clients. Call it in each transaction that adds
 * one of these: the tables then hold only live rows.
 */
export function removeExpired(queries: Queries, now: number): void {
  // Must run first: it reads the codes and tokens that are deleted next.
  queries
    .update(oauthClients)
    .set({ expiresAt: sql`coalesce(${lastExpiry(oauthClients.id)}, ${now}) + ${UNUSED_CLIENT_MS}` })
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
