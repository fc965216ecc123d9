import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { ApiKey } from './model.ts'

/** API keys: found by their SHA-256, with a copy that only the master key opens. */
export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  label: text('label').notNull(),
  hash: blob('hash', { mode: 'buffer' }).notNull(),
  /** The end of the key, for the masked form. */
  lastFour: text('last_four').notNull(),
  /** The sealed key; null until the plaintext of a key of before is known again. */
  cipher: blob('cipher', { mode: 'buffer' }),
  /** Empty means all of the account's. */
  allowedServerIds: text('allowed_server_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  allowedProjectIds: text('allowed_project_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
  lastUsedAt: integer('last_used_at'),
})

/** A key as it is stored. */
export type ApiKeyRow = typeof apiKeys.$inferSelect

/** The only way from a row to the public shape. @param lastUsedAt milliseconds since 1970 */
export const toApiKey = (row: ApiKeyRow, lastUsedAt: number | null): ApiKey => ({
  id: row.id,
  label: row.label,
  masked: `sk_live_…${row.lastFour}`,
  allowed_server_ids: row.allowedServerIds,
  allowed_project_ids: row.allowedProjectIds,
  created_at: toIso(row.createdAt),
  last_used_at: lastUsedAt === null ? null : toIso(lastUsedAt),
})
