import { and, asc, eq, gt, inArray, lt, lte, sql } from 'drizzle-orm'
import { type EventRow, events } from '../../events/table.ts'
import type { Queries } from '../../storage/database.ts'
import type { Attempt } from './delivery.ts'
import { RETRY_WAITS_MS } from './retry.ts'
import { type DeliveryRow, deliveries, deliveryAttempts, type WebhookRow, webhooks } from './table.ts'

/** How many deliveries that are delivered or failed are kept for a webhook, with their attempts. */
export const KEPT_DELIVERIES = 10_000

/** How much is kept over that before it is removed at once. */
const KEPT_SLACK = 500

/** Written out, so that SQLite sees that the index of what is pending serves. */
const isPending = sql`${deliveries.status} = 'pending'`

/** What is to be sent next. */
export interface Due {
  delivery: DeliveryRow
  event: EventRow
  webhook: WebhookRow
}

/** What the attempt means for the delivery. */
export type Verdict = { status: 'delivered' | 'failed' } | { status: 'pending'; nextAttemptAt: number }

/** The deliveries that are to be made, in the database: nothing of them is held in memory. */
export class DeliveryQueue {
  readonly #queries: Queries
  readonly #settled = new Map<string, number>()
  readonly #first
  readonly #retry

  constructor(queries: Queries) {
    this.#queries = queries
    const due = () =>
      queries
        .select({ delivery: deliveries, event: events, webhook: webhooks })
        .from(deliveries)
        .innerJoin(events, eq(events.seq, deliveries.eventSeq))
        .innerJoin(webhooks, eq(webhooks.id, deliveries.webhookId))
    const ofWebhook = and(eq(deliveries.webhookId, sql.placeholder('webhookId')), isPending)
    this.#first = due()
      .where(and(ofWebhook, eq(deliveries.nextAttemptAt, 0)))
      .orderBy(asc(deliveries.eventSeq))
      .limit(1)
      .prepare()
    this.#retry = due()
      .where(
        and(
          ofWebhook,
          gt(deliveries.nextAttemptAt, 0),
          lte(deliveries.nextAttemptAt, sql.placeholder('now')),
        ),
      )
      .orderBy(asc(deliveries.nextAttemptAt), asc(deliveries.eventSeq))
      .limit(1)
      .prepare()
  }

  /**
   * What a webhook is to be sent next: events in their order, and retries that are due.
   *
   * @param retryFirst which of the two is preferred; taking turns, neither holds the other up
   */
  next(webhookId: string, now: number, retryFirst: boolean): Due | undefined {
    const first = () => this.#first.get({ webhookId })
    const retry = () => this.#retry.get({ webhookId, now })
    return retryFirst ? (retry() ?? first()) : (first() ?? retry())
  }

  /** The webhooks that have something to be sent now. */
  dueWebhooks(now: number): string[] {
    const due = this.#queries
      .select({ one: sql`1` })
      .from(deliveries)
      .where(and(eq(deliveries.webhookId, webhooks.id), isPending, lte(deliveries.nextAttemptAt, now)))
    return this.#queries
      .select({ id: webhooks.id })
      .from(webhooks)
      .where(sql`exists ${due}`)
      .all()
      .map(({ id }) => id)
  }

  /** When the next retry is due that is not due yet; null where none waits. */
  nextRetryAt(now: number): number | null {
    const row = this.#queries
      .select({ at: sql<number | null>`min(${deliveries.nextAttemptAt})` })
      .from(deliveries)
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`, gt(deliveries.nextAttemptAt, now)))
      .get()
    return row?.at ?? null
  }

  /** Moves the times of all retries: the calendar was corrected by so much while no time passed. */
  shiftRetries(ms: number): void {
    this.#queries
      .update(deliveries)
      .set({ nextAttemptAt: sql`max(1, ${deliveries.nextAttemptAt} + ${ms})` })
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`))
      .run()
  }

  /** Where the calendar was set back while berth was down, no retry waits longer than the longest wait. */
  limitRetries(now: number): void {
    const latest = now + Math.max(...RETRY_WAITS_MS)
    this.#queries
      .update(deliveries)
      .set({ nextAttemptAt: latest })
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`, gt(deliveries.nextAttemptAt, latest)))
      .run()
  }

  /** Keeps an attempt and what it means. A delivery that is gone by now is left gone. */
  record({ delivery }: Due, attempt: Attempt, verdict: Verdict): void {
    this.#queries.transaction((tx) => {
      const [known] = tx
        .update(deliveries)
        .set({
          status: verdict.status,
          attempts: delivery.attempts + 1,
          nextAttemptAt: verdict.status === 'pending' ? verdict.nextAttemptAt : 0,
        })
        .where(eq(deliveries.id, delivery.id))
        .returning({ id: deliveries.id })
        .all()
      if (!known) return
      tx.insert(deliveryAttempts)
        .values({ ...attempt, deliveryId: delivery.id, number: delivery.attempts + 1 })
        .run()
    })
    if (verdict.status !== 'pending') this.#prune(delivery.webhookId)
  }

  /** Has a delivery attempted at once, whatever became of it. Returns whose it is, or null where there is none. */
  retry(id: string): string | null {
    const [row] = this.#queries
      .update(deliveries)
      .set({ status: 'pending', nextAttemptAt: 0 })
      .where(eq(deliveries.id, id))
      .returning({ webhookId: deliveries.webhookId })
      .all()
    return row?.webhookId ?? null
  }

  /** A webhook is gone. */
  forget(webhookId: string): void {
    this.#settled.delete(webhookId)
  }

  /** Removes what is over the number to keep, now and then. */
  #prune(webhookId: string): void {
    // At the first one after a start it is looked at too: it is not known how many there are.
    const settled = (this.#settled.get(webhookId) ?? KEPT_SLACK - 1) + 1
    this.#settled.set(webhookId, settled % KEPT_SLACK)
    if (settled < KEPT_SLACK) return
    const ofWebhook = and(eq(deliveries.webhookId, webhookId), sql`${deliveries.status} <> 'pending'`)
    const oldestKept = this.#queries
      .select({ seq: deliveries.eventSeq })
      .from(deliveries)
      .where(ofWebhook)
      .orderBy(sql`${deliveries.eventSeq} desc`)
      .limit(1)
      .offset(KEPT_DELIVERIES - 1)
      .get()
    if (!oldestKept) return
    const old = this.#queries
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(and(ofWebhook, lt(deliveries.eventSeq, oldestKept.seq)))
      .limit(4 * KEPT_SLACK)
    this.#queries.delete(deliveries).where(inArray(deliveries.id, old)).run()
  }
}
