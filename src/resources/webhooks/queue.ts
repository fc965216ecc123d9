import { and, asc, eq, exists, gt, inArray, lt, lte, type SQL, sql } from 'drizzle-orm'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Queries } from '../../storage/database.ts'
import { type EventRow, events } from '../events/table.ts'
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

/** An attempt that waits for the next transaction. */
interface Unwritten {
  due: Due
  attempt: Attempt
  verdict: Verdict
  resolve: () => void
  reject: (error: unknown) => void
}

/** The deliveries that are to be made, in the database: nothing of them is held in memory. */
export class DeliveryQueue {
  readonly #queries: Queries
  readonly #changes: Notifier
  readonly #settled = new Map<string, number>()
  readonly #unwritten: Unwritten[] = []
  readonly #first
  readonly #retry
  readonly #update
  readonly #insert

  /** @param changes is told of every change of a delivery */
  constructor(queries: Queries, changes: Notifier) {
    this.#queries = queries
    this.#changes = changes
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
    this.#update = queries
      .update(deliveries)
      .set({
        status: sql`${sql.placeholder('status')}`,
        attempts: sql`${sql.placeholder('number')}`,
        nextAttemptAt: sql`${sql.placeholder('nextAttemptAt')}`,
      })
      .where(eq(deliveries.id, sql.placeholder('deliveryId')))
      .returning({ id: deliveries.id })
      .prepare()
    this.#insert = queries
      .insert(deliveryAttempts)
      .values({
        deliveryId: sql.placeholder('deliveryId'),
        number: sql.placeholder('number'),
        at: sql.placeholder('at'),
        ms: sql.placeholder('ms'),
        status: sql.placeholder('status'),
        error: sql.placeholder('error'),
        headers: sql.placeholder('headers'),
        body: sql.placeholder('body'),
        answer: sql.placeholder('answer'),
      })
      .prepare()
  }

  /** The first event that a webhook has not been sent yet. */
  nextEvent(webhookId: string): Due | undefined {
    return this.#first.get({ webhookId })
  }

  /** The retry of a webhook that has been due for longest. */
  nextRetry(webhookId: string, now: number): Due | undefined {
    return this.#retry.get({ webhookId, now })
  }

  /** The webhooks that have events to be sent. */
  webhooksWithEvents(): string[] {
    return this.#webhooksWith(eq(deliveries.nextAttemptAt, 0))
  }

  /** The webhooks that have retries due. */
  webhooksWithRetries(now: number): string[] {
    return this.#webhooksWith(and(gt(deliveries.nextAttemptAt, 0), lte(deliveries.nextAttemptAt, now)))
  }

  /** One look at the index for each webhook. */
  #webhooksWith(when: SQL | undefined): string[] {
    const some = this.#queries
      .select({ one: sql`1` })
      .from(deliveries)
      .where(and(eq(deliveries.webhookId, webhooks.id), isPending, when))
    return this.#queries
      .select({ id: webhooks.id })
      .from(webhooks)
      .where(exists(some))
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

  /**
   * Keeps an attempt and what it means; resolves when that is written. What ends in the same moment is
   * written in one transaction. A delivery that is gone by now is left gone.
   */
  record(due: Due, attempt: Attempt, verdict: Verdict): Promise<void> {
    if (this.#unwritten.length === 0) setImmediate(() => this.#write())
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unwritten.push({ due, attempt, verdict, resolve, reject })
    return promise
  }

  #write(): void {
    const batch = this.#unwritten.splice(0)
    try {
      this.#queries.transaction(() => {
        for (const { due, attempt, verdict } of batch) this.#writeOne(due, attempt, verdict)
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
      return
    }
    this.#changes.notify()
    for (const { resolve } of batch) resolve()
  }

  #writeOne({ delivery }: Due, attempt: Attempt, verdict: Verdict): void {
    const which = { deliveryId: delivery.id, number: delivery.attempts + 1 }
    const nextAttemptAt = verdict.status === 'pending' ? verdict.nextAttemptAt : 0
    const known = this.#update.get({ ...which, status: verdict.status, nextAttemptAt })
    if (known) this.#insert.run({ ...which, ...attempt })
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
    this.#changes.notify()
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
