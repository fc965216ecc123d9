import { asc, desc, eq, gt, sql } from 'drizzle-orm'
import { events } from '../../events/table.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import { deliveries, fanOut, type WebhookRow, webhooks } from './table.ts'

/** Events of which deliveries are made in one transaction: requests are answered between two. */
const AT_ONCE = 200

/** Rows in one statement, well under SQLite's limit of variables. */
const ROWS_AT_ONCE = 500

/** What the fan-out needs. */
interface FanOutDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
}

/** What one step did. */
export interface FannedOut {
  /** The webhooks that have something to be sent now. */
  webhookIds: ReadonlySet<string>
  /** Whether further events wait. */
  more: boolean
}

/**
 * Makes deliveries of events. A step writes them together with how far it came, so that a crash
 * neither loses a delivery nor makes one twice.
 */
export class FanOut {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids

  constructor({ queries, clock, ids }: FanOutDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
  }

  /** Takes up to 200 events that are new since the last step. */
  step(): FannedOut {
    return this.#queries.transaction((tx) => {
      const done = tx.select({ seq: fanOut.seq }).from(fanOut).get()?.seq ?? 0
      const fresh = tx
        .select({ seq: events.seq, accountId: events.accountId, event: events.event })
        .from(events)
        .where(gt(events.seq, done))
        .orderBy(asc(events.seq))
        .limit(AT_ONCE)
        .all()
      const last = fresh.at(-1)
      if (!last) return { webhookIds: new Set<string>(), more: false }

      const byAccount = new Map<string, WebhookRow[]>()
      const subscribedIn = (accountId: string) => {
        const known =
          byAccount.get(accountId) ??
          tx.select().from(webhooks).where(eq(webhooks.accountId, accountId)).all()
        byAccount.set(accountId, known)
        return known
      }
      const createdAt = this.#clock.now()
      const rows = fresh.flatMap(({ seq, accountId, event }) =>
        subscribedIn(accountId)
          .filter((webhook) => webhook.fromSeq < seq && webhook.events.includes(event))
          .map(({ id }) => ({
            id: this.#ids.next('dlv', (taken) => this.#exists(taken)),
            webhookId: id,
            eventSeq: seq,
            status: 'pending' as const,
            createdAt,
          })),
      )
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
        tx.insert(deliveries)
          .values(rows.slice(at, at + ROWS_AT_ONCE))
          .run()
      }
      tx.update(fanOut).set({ seq: last.seq }).run()
      return {
        webhookIds: new Set(rows.map(({ webhookId }) => webhookId)),
        more: fresh.length === AT_ONCE,
      }
    })
  }

  #exists(id: string): boolean {
    return (
      this.#queries.select({ id: deliveries.id }).from(deliveries).where(eq(deliveries.id, id)).get() !==
      undefined
    )
  }
}

/**
 * The position from which a new webhook subscribes: the last event there is. Where nobody has
 * subscribed so far, what was emitted until now is passed over for good.
 */
export function subscribePosition(queries: Queries): number {
  const newest = queries.select({ seq: events.seq }).from(events).orderBy(desc(events.seq)).limit(1).get()
  const seq = newest?.seq ?? 0
  const others = queries.select({ id: webhooks.id }).from(webhooks).limit(1).get()
  if (!others)
    queries
      .update(fanOut)
      .set({ seq: sql`max(${fanOut.seq}, ${seq})` })
      .run()
  return seq
}
