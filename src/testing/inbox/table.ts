import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Requests that inboxes received, in order. */
export const inbox = sqliteTable('inbox', {
  seq: integer('seq').primaryKey({ autoIncrement: true }),
  id: text('id').notNull(),
  name: text('name').notNull(),
  /** The query, without the question mark and not decoded. */
  query: text('query').notNull(),
  headers: text('headers', { mode: 'json' }).$type<Record<string, string>>().notNull(),
  body: blob('body', { mode: 'buffer' }).notNull(),
  /** The `webhook-id` header, which is the same for every attempt to deliver an event. */
  messageId: text('message_id'),
  /** The webhook whose secret made the signature. */
  webhookId: text('webhook_id'),
  /** Null if no known secret can verify it. */
  verified: integer('verified', { mode: 'boolean' }),
  reason: text('reason').notNull(),
  /** The status of the response. */
  status: integer('status').notNull(),
  /** Milliseconds since 1970. */
  receivedAt: integer('received_at').notNull(),
})

/** A stored entry. */
export type InboxRow = typeof inbox.$inferSelect
