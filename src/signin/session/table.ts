import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Signed-in browsers, in a separate database: see `openSessionDatabase`. */
export const sessions = sqliteTable('sessions', {
  /** SHA-256 of the secret in the browser's cookie. */
  hash: blob('hash', { mode: 'buffer' }).primaryKey(),
  id: text('id').notNull(),
  accountId: text('account_id').notNull(),
  keyId: text('key_id'),
  userAgent: text('user_agent').notNull(),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
  seenAt: integer('seen_at').notNull(),
  isAdmin: integer('is_admin', { mode: 'boolean' }).notNull(),
})
