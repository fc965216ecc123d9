import { blob, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** The first responses to POSTs with an Idempotency-Key, by API key. */
export const idempotency = sqliteTable(
  'idempotency',
  {
    accountId: text('account_id').notNull(),
    apiKeyId: text('api_key_id').notNull(),
    key: text('key').notNull(),
    requestHash: blob('request_hash', { mode: 'buffer' }).notNull(),
    status: integer('status').notNull(),
    /** Sealed, because responses may contain secrets; null for one that is not kept. */
    body: blob('body', { mode: 'buffer' }),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.apiKeyId, table.key] })],
)
