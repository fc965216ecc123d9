import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What was posted to the inboxes, in the order in which it came. */
export const inbox = sqliteTable('inbox', {
  seq: integer('seq').primaryKey({ autoIncrement: true }),
  id: text('id').notNull(),
  name: text('name').notNull(),
  /** What stood behind the question mark, as it came. */
  query: text('query').notNull(),
  headers: text('headers', { mode: 'json' }).$type<Record<string, string>>().notNull(),
  body: blob('body', { mode: 'buffer' }).notNull(),
  /** The header `webhook-id`, the same at every attempt to deliver an event. */
  messageId: text('message_id'),
  /** The webhook whose secret made the signature. */
  webhookId: text('webhook_id'),
  /** Null where no known secret could tell. */
  verified: integer('verified', { mode: 'boolean' }),
  reason: text('reason').notNull(),
  /** What was answered. */
  status: integer('status').notNull(),
  /** Milliseconds since 1970. */
  receivedAt: integer('received_at').notNull(),
})

/** An entry as it is stored. */
export type InboxRow = typeof inbox.$inferSelect
