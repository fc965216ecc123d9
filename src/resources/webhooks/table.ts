import { blob, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { EventName } from '../events/names.ts'
import type { DeliveryStatus, Webhook } from './model.ts'

/** Subscriptions. Times are milliseconds since 1970. */
export const webhooks = sqliteTable('webhooks', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  url: text('url').notNull(),
  events: text('events', { mode: 'json' }).$type<EventName[]>().notNull(),
  /** Sealed. */
  secret: blob('secret', { mode: 'buffer' }).notNull(),
  /** The last event before the subscription. */
  fromSeq: integer('from_seq').notNull(),
  createdAt: integer('created_at').notNull(),
  /** When its receiver answered with 410; null while events are sent. */
  disabledAt: integer('disabled_at'),
})

/** A subscription as it is stored. */
export type WebhookRow = typeof webhooks.$inferSelect

/** The last event with deliveries. The table has one row. */
export const fanOut = sqliteTable('fan_out', {
  id: integer('id').primaryKey(),
  seq: integer('seq').notNull(),
})

/** One event for one webhook. */
export const deliveries = sqliteTable('deliveries', {
  id: text('id').primaryKey(),
  webhookId: text('webhook_id').notNull(),
  eventSeq: integer('event_seq').notNull(),
  status: text('status').$type<DeliveryStatus>().notNull(),
  /** Attempts made so far. */
  attempts: integer('attempts').notNull().default(0),
  /** 0 for "at once". */
  nextAttemptAt: integer('next_attempt_at').notNull().default(0),
  createdAt: integer('created_at').notNull(),
})

/** A delivery as it is stored. */
export type DeliveryRow = typeof deliveries.$inferSelect

/** Attempts to deliver. */
export const deliveryAttempts = sqliteTable(
  'delivery_attempts',
  {
    deliveryId: text('delivery_id').notNull(),
    /** From 1. */
    number: integer('number').notNull(),
    at: integer('at').notNull(),
    ms: real('ms').notNull(),
    /** HTTP status; null if there was no response. */
    status: integer('status'),
    /** Why it failed; null for a success. */
    error: text('error'),
    headers: text('headers', { mode: 'json' }).$type<Record<string, string>>().notNull(),
    body: text('body').notNull(),
    /** The first KiB of the response; null if there was none. */
    response: text('answer'),
    /** Null if there was none, or for an attempt that an older berth made. */
    responseHeaders: text('response_headers', { mode: 'json' }).$type<Record<string, string>>(),
  },
  (table) => [primaryKey({ columns: [table.deliveryId, table.number] })],
)

/** An attempt as it is stored. */
export type AttemptRow = typeof deliveryAttempts.$inferSelect

/** Converts a row to the public form. */
export const toWebhook = ({ id, url, events, createdAt, disabledAt }: WebhookRow): Webhook => ({
  id,
  url,
  events,
  created_at: toIso(createdAt),
  disabled_at: disabledAt === null ? null : toIso(disabledAt),
})
