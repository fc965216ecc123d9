import { and, type Column, eq, isNotNull, isNull, lte, notExists, type SQL, sql } from 'drizzle-orm'
import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { Queries } from '../../storage/database.ts'
import type { ClientMetadata } from './client-metadata.ts'

/** Programs that may ask for access on a person's behalf (RFC 7591). */
export const oauthClients = sqliteTable('oauth_clients', {
  id: text('id').primaryKey(),
  metadata: text('metadata', { mode: 'json' }).$type<ClientMetadata>().notNull(),
  /** SHA-256 of its secret; null for a public client. */
  secretHash: blob('secret_hash', { mode: 'buffer' }),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
  /** Null while the client has a grant. */
  expiresAt: integer('expires_at'),
})

/** Grants of people to clients. */
export const oauthGrants = sqliteTable('oauth_grants', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  clientId: text('client_id').notNull(),
  /** The resource of its tokens (RFC 8707). */
  resource: text('resource').notNull(),
  /** Empty means all servers of the account. */
  allowedServerIds: text('allowed_server_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  allowedProjectIds: text('allowed_project_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  createdAt: integer('created_at').notNull(),
  lastUsedAt: integer('last_used_at'),
})

/** Authorization codes, by their SHA-256. */
export const oauthCodes = sqliteTable('oauth_codes', {
  hash: blob('hash', { mode: 'buffer' }).primaryKey(),
  grantId: text('grant_id').notNull(),
  /** The browser session that granted it. */
  sessionId: text('session_id').notNull(),
  redirectUri: text('redirect_uri').notNull(),
  /** The PKCE challenge, S256 (RFC 7636). */
  challenge: text('challenge').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: integer('used_at'),
})

/** Access and refresh tokens, by their SHA-256. */
export const oauthTokens = sqliteTable('oauth_tokens', {
  hash: blob('hash', { mode: 'buffer' }).primaryKey(),
  grantId: text('grant_id').notNull(),
  kind: text('kind', { enum: ['access', 'refresh'] }).notNull(),
  expiresAt: integer('expires_at').notNull(),
  /** When a refresh token was exchanged for the next one. */
  replacedAt: integer('replaced_at'),
})

/** Returns a client's name for pages: the name that it chose, or else its address. */
export function clientName({ client_name, redirect_uris }: ClientMetadata): string {
  const [uri = ''] = redirect_uris
  return client_name || `A client at ${/^[^:]+:\/*[^/?]*/.exec(uri)?.[0] ?? 'an unknown place'}`
}

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
