import { asc, desc, eq, gt, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import { events } from '../events/table.ts'
import { deliveries, fanOut, type WebhookRow, webhooks } from './table.ts'

/** Events of which deliveries are made in one transaction: requests are answered between two. */
const AT_ONCE = 200

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
  readonly #fresh
  readonly #subscribed
  readonly #known
  readonly #insert

  constructor({ queries, clock, ids }: FanOutDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#fresh = queries
      .select({ seq: events.seq, accountId: events.accountId, event: events.event })
      .from(events)
      .where(gt(events.seq, queries.select({ seq: fanOut.seq }).from(fanOut)))
      .orderBy(asc(events.seq))
      .limit(AT_ONCE)
      .prepare()
    this.#subscribed = queries
      .select()
      .from(webhooks)
      .where(eq(webhooks.accountId, sql.placeholder('accountId')))
      .prepare()
    this.#known = queries
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(eq(deliveries.id, sql.placeholder('id')))
      .prepare()
    this.#insert = queries
      .insert(deliveries)
      .values({
        id: sql.placeholder('id'),
        webhookId: sql.placeholder('webhookId'),
        eventSeq: sql.placeholder('eventSeq'),
        status: 'pending',
        createdAt: sql.placeholder('createdAt'),
      })
      .prepare()
  }

  /** Takes up to 200 events that are new since the last step. */
  step(): FannedOut {
    return this.#queries.transaction(() => {
      const fresh = this.#fresh.all()
      const webhookIds = new Set<string>()
      const byAccount = new Map<string, WebhookRow[]>()
      const createdAt = this.#clock.now()
      for (const { seq, accountId, event } of fresh) {
        const subscribed = byAccount.get(accountId) ?? this.#subscribed.all({ accountId })
        byAccount.set(accountId, subscribed)
        for (const webhook of subscribed) {
          if (webhook.fromSeq >= seq || !webhook.events.includes(event)) continue
          const id = this.#ids.next('dlv', (taken) => this.#known.get({ id: taken }) !== undefined)
          this.#insert.run({ id, webhookId: webhook.id, eventSeq: seq, createdAt })
          webhookIds.add(webhook.id)
        }
      }
      const last = fresh.at(-1)
      if (last) this.#queries.update(fanOut).set({ seq: last.seq }).run()
      return { webhookIds, more: fresh.length === AT_ONCE }
    })
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
