import { and, asc, desc, eq, gt, isNull, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import { isSubscribable } from '../events/names.ts'
import { events } from '../events/table.ts'
import { deliveries, fanOut, type WebhookRow, webhooks } from './table.ts'

/** Events for which one transaction creates deliveries. Requests are handled between transactions. */
const BATCH_SIZE = 200

/** Dependencies of the fan-out. */
interface FanOutDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** Notified of every new delivery. */
  changes: Changes
}

/** The result of a step. */
interface FanOutStep {
  /** Webhooks that got deliveries. */
  webhookIds: ReadonlySet<string>
  /** Whether further events wait. */
  hasMore: boolean
}

/**
 * Creates deliveries for events. A step stores the deliveries together with its position, so a crash neither loses
 * nor repeats one.
 */
export class FanOut {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #changes: Changes
  readonly #fresh
  readonly #subscribed
  readonly #known
  readonly #insert

  constructor({ queries, clock, ids, changes }: FanOutDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#changes = changes
    this.#fresh = queries
      .select({ seq: events.seq, accountId: events.accountId, event: events.event })
      .from(events)
      .where(gt(events.seq, queries.select({ seq: fanOut.seq }).from(fanOut)))
      .orderBy(asc(events.seq))
      .limit(BATCH_SIZE)
      .prepare()
    this.#subscribed = queries
      .select()
      .from(webhooks)
      .where(and(eq(webhooks.accountId, sql.placeholder('accountId')), isNull(webhooks.disabledAt)))
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

  /** Processes up to 200 events that are new since the last step. */
  step(): FanOutStep {
    return this.#queries.transaction(() => {
      const fresh = this.#fresh.all()
      const webhookIds = new Set<string>()
      const byAccount = new Map<string, WebhookRow[]>()
      const createdAt = this.#clock.now()
      for (const { seq, accountId, event } of fresh) {
        if (!isSubscribable(event)) continue
        const subscribed = byAccount.get(accountId) ?? this.#subscribed.all({ accountId })
        byAccount.set(accountId, subscribed)
        for (const webhook of subscribed) {
          if (webhook.fromSeq >= seq || !webhook.events.includes(event)) continue
          const id = this.#ids.next('dlv', (taken) => this.#known.get({ id: taken }) !== undefined)
          this.#insert.run({ id, webhookId: webhook.id, eventSeq: seq, createdAt })
          webhookIds.add(webhook.id)
          this.#changes.notify('delivery', id, null)
        }
      }
      const last = fresh.at(-1)
      if (last) this.#queries.update(fanOut).set({ seq: last.seq }).run()
      return { webhookIds, hasMore: fresh.length === BATCH_SIZE }
    })
  }
}

/**
 * Returns the position from which a new webhook subscribes: the last event. If there are no other webhooks, the
 * fan-out skips all earlier events.
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
