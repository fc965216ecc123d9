import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { EmittedName } from './names.ts'
import { type EventPayload, payloadOf } from './payload.ts'

/** Emitted events, in order. */
export const events = sqliteTable('events', {
  seq: integer('seq').primaryKey({ autoIncrement: true }),
  id: text('id').notNull(),
  accountId: text('account_id').notNull(),
  event: text('event').$type<EmittedName>().notNull(),
  /** The payload without its name and time. */
  data: text('data', { mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  /** The request that caused it; null if none did, or if it is not known. */
  requestId: text('request_id'),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
})

/** An event as it is stored. */
export type EventRow = typeof events.$inferSelect

/** Converts a row to the payload. */
export const toPayload = ({ event, data, createdAt }: EventRow): EventPayload =>
  payloadOf(event, data, toIso(createdAt))
