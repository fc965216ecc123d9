import { blob, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** First answers to POSTs that carried an Idempotency-Key. */
export const idempotency = sqliteTable(
  'idempotency',
  {
    accountId: text('account_id').notNull(),
    key: text('key').notNull(),
    requestHash: blob('request_hash', { mode: 'buffer' }).notNull(),
    status: integer('status').notNull(),
    body: text('body').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.key] })],
)
