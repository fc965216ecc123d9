import { and, asc, desc, eq, exists, inArray, lte, not, notExists, or } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { events } from '../events/table.ts'
import { deliveries, fanOut, webhooks } from './table.ts'

/** Number of events to keep: as many as `GET /_berth/events` lists at most. */
export const KEPT_EVENTS = 100_000

/** Most events that one call deletes; requests wait meanwhile. @bound client */
const MOST_DELETED = 4_000

/**
 * Deletes events beyond the newest 100,000, the oldest first and at most 4,000 of them. Keeps those that have deliveries, or
 * may get some.
 */
export function deleteOldEvents(queries: Queries): void {
  const newest = queries.select({ seq: events.seq }).from(events).orderBy(desc(events.seq)).limit(1).get()
  if (newest === undefined) return
  const hasDeliveries = exists(queries.select().from(deliveries).where(eq(deliveries.eventSeq, events.seq)))
  const isFannedOut = lte(events.seq, queries.select({ seq: fanOut.seq }).from(fanOut))
  const old = queries
    .select({ seq: events.seq })
    .from(events)
    .where(
      and(
        lte(events.seq, newest.seq - KEPT_EVENTS),
        not(hasDeliveries),
        or(isFannedOut, notExists(queries.select().from(webhooks))),
      ),
    )
    .orderBy(asc(events.seq))
    .limit(MOST_DELETED)
  queries.delete(events).where(inArray(events.seq, old)).run()
}
