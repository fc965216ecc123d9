import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** API keys: their SHA-256 alone is kept. */
export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  label: text('label').notNull(),
  hash: blob('hash', { mode: 'buffer' }).notNull(),
  /** The end of the key, for the masked form. */
  lastFour: text('last_four').notNull(),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
})
