import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { ApiKey } from './model.ts'

/** API keys, found by their SHA-256, each with a copy sealed by the master key. */
export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  label: text('label').notNull(),
  hash: blob('hash', { mode: 'buffer' }).notNull(),
  /** The last four characters of the key, for the masked form. */
  lastFour: text('last_four').notNull(),
  /** The sealed key; null until the plaintext of an older key is known again. */
  cipher: blob('cipher', { mode: 'buffer' }),
  /** Empty means all servers of the account. */
  allowedServerIds: text('allowed_server_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  allowedProjectIds: text('allowed_project_ids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
  lastUsedAt: integer('last_used_at'),
})

/** A key as it is stored. */
export type ApiKeyRow = typeof apiKeys.$inferSelect

/**
 * Converts a row to the public form.
 *
 * @param lastUsedAt milliseconds since 1970
 */
export const toApiKey = (row: ApiKeyRow, lastUsedAt: number | null): ApiKey => ({
  id: row.id,
  label: row.label,
  masked: `sk_live_…${row.lastFour}`,
  allowed_server_ids: row.allowedServerIds,
  allowed_project_ids: row.allowedProjectIds,
  created_at: toIso(row.createdAt),
  last_used_at: lastUsedAt === null ? null : toIso(lastUsedAt),
})
