import { blob, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** First answers to POSTs that carried an Idempotency-Key, each for the API key that got it. */
export const idempotency = sqliteTable(
  'idempotency',
  {
    accountId: text('account_id').notNull(),
    apiKeyId: text('api_key_id').notNull(),
    key: text('key').notNull(),
    requestHash: blob('request_hash', { mode: 'buffer' }).notNull(),
    status: integer('status').notNull(),
    /** Sealed, since answers may carry secrets; null for an answer that was streamed. */
    body: blob('body', { mode: 'buffer' }),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.apiKeyId, table.key] })],
)
