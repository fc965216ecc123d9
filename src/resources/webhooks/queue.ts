import { and, asc, eq, exists, gt, inArray, lt, lte, type SQL, sql } from 'drizzle-orm'
import { badRequest } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import { type EventRow, events } from '../events/table.ts'
import type { Attempt } from './delivery.ts'
import { RETRY_WAITS_MS } from './retry.ts'
import { type DeliveryRow, deliveries, deliveryAttempts, type WebhookRow, webhooks } from './table.ts'

/** Number of finished deliveries to keep for each webhook, with their attempts. */
export const KEPT_DELIVERIES = 10_000

/** Finished deliveries beyond that limit that accumulate before they are pruned. */
const KEPT_SLACK = 500

/** A literal, because SQLite uses the partial index only for one. */
const isPending = sql`${deliveries.status} = 'pending'`

/** A delivery to attempt next. */
export interface DueDelivery {
  delivery: DeliveryRow
  event: EventRow
  webhook: WebhookRow
}

/** The status of a delivery after an attempt. */
export type DeliveryOutcome =
  /** `disabled` also switches its webhook off. */
  { status: 'delivered' | 'failed' | 'disabled' } | { status: 'pending'; nextAttemptAt: number }

/** An attempt that waits for the next transaction. */
interface PendingWrite {
  due: DueDelivery
  attempt: Attempt
  outcome: DeliveryOutcome
  resolve: () => void
  reject: (error: unknown) => void
}

/** Dependencies of the queue. */
interface QueueDependencies {
  queries: Queries
  clock: Clock
  outbox: Outbox
  /** Notified of every change of a delivery, and of webhooks that are switched off. */
  changes: Changes
}

/** The queue of deliveries, stored only in the database. */
export class DeliveryQueue {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #changes: Changes
  readonly #endedSincePrune = new Map<string, number>()
  readonly #pendingWrites: PendingWrite[] = []
  readonly #first
  readonly #retry
  readonly #update
  readonly #insert

  constructor({ queries, clock, outbox, changes }: QueueDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#outbox = outbox
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
        response: sql.placeholder('response'),
        responseHeaders: sql.placeholder('responseHeaders'),
      })
      .prepare()
  }

  /** Returns the first event that was not sent to a webhook yet. */
  nextEvent(webhookId: string): DueDelivery | undefined {
    return this.#first.get({ webhookId })
  }

  /** Returns the retry of a webhook that is due for longest. */
  nextRetry(webhookId: string, now: number): DueDelivery | undefined {
    return this.#retry.get({ webhookId, now })
  }

  /** Returns the webhooks with events to send. */
  webhooksWithEvents(): string[] {
    return this.#webhooksWith(eq(deliveries.nextAttemptAt, 0))
  }

  /** Returns the webhooks with retries that are due. */
  webhooksWithRetries(now: number): string[] {
    return this.#webhooksWith(and(gt(deliveries.nextAttemptAt, 0), lte(deliveries.nextAttemptAt, now)))
  }

  /** Uses one index lookup per webhook. */
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

  /** Returns the next retry that is not due yet, and its delivery; null if there is none. */
  earliestRetry(now: number): { at: number; id: string } | null {
    // The other columns are those of the row with the least one (sqlite.org/lang_select.html, section 2.5).
    const row = this.#queries
      .select({ at: sql<number | null>`min(${deliveries.nextAttemptAt})`, id: deliveries.id })
      .from(deliveries)
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`, gt(deliveries.nextAttemptAt, now)))
      .get()
    return row === undefined || row.at === null ? null : { at: row.at, id: row.id }
  }

  /** Shifts the times of all retries after a correction of the calendar. */
  shiftRetries(ms: number): void {
    this.#queries
      .update(deliveries)
      .set({ nextAttemptAt: sql`max(1, ${deliveries.nextAttemptAt} + ${ms})` })
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`))
      .run()
  }

  /** Limits the wait of every retry to the longest wait, in case the calendar was set back while berth was down. */
  limitRetries(now: number): void {
    const latest = now + Math.max(...RETRY_WAITS_MS)
    this.#queries
      .update(deliveries)
      .set({ nextAttemptAt: latest })
      .where(and(isPending, sql`${deliveries.nextAttemptAt} > 0`, gt(deliveries.nextAttemptAt, latest)))
      .run()
  }

  /**
   * Stores an attempt and its outcome, and resolves when they are written. Attempts that end at the same moment share
   * a transaction. An attempt of a deleted delivery is dropped.
   */
  record(due: DueDelivery, attempt: Attempt, outcome: DeliveryOutcome): Promise<void> {
    if (this.#pendingWrites.length === 0) setImmediate(() => this.#write())
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#pendingWrites.push({ due, attempt, outcome, resolve, reject })
    return promise
  }

  #write(): void {
    const batch = this.#pendingWrites.splice(0)
    try {
      this.#queries.transaction(() => {
        for (const { due, attempt, outcome } of batch) this.#writeOne(due, attempt, outcome)
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
      return
    }
    for (const { due, resolve } of batch) {
      this.#changes.notify('delivery', due.delivery.id, null)
      resolve()
    }
  }

  #writeOne({ delivery, webhook }: DueDelivery, attempt: Attempt, outcome: DeliveryOutcome): void {
    const which = { deliveryId: delivery.id, number: delivery.attempts + 1 }
    const nextAttemptAt = outcome.status === 'pending' ? outcome.nextAttemptAt : 0
    const known = this.#update.get({ ...which, status: outcome.status, nextAttemptAt })
    if (known) this.#insert.run({ ...which, ...attempt })
    if (known && outcome.status === 'disabled') this.#disable(webhook, delivery.id)
    if (outcome.status !== 'pending') this.#prune(delivery.webhookId)
  }

  /** Switches a webhook off and ends its pending deliveries. */
  #disable({ id, accountId, url }: WebhookRow, deliveryId: string): void {
    this.#queries.update(webhooks).set({ disabledAt: this.#clock.now() }).where(eq(webhooks.id, id)).run()
    const ended = this.#queries
      .update(deliveries)
      .set({ status: 'disabled', nextAttemptAt: 0 })
      .where(and(eq(deliveries.webhookId, id), isPending))
      .returning({ id: deliveries.id })
      .all()
    this.#outbox.emit(accountId, 'webhook.disabled', { webhook_id: id, url, delivery_id: deliveryId })
    this.#changes.notify('webhook', id, accountId)
    for (const delivery of ended) this.#changes.notify('delivery', delivery.id, null)
  }

  /**
   * Schedules a delivery for an immediate attempt, with any status.
   *
   * @returns the id of its webhook, or null if there is no such delivery
   * @throws BerthError 400 if its webhook is disabled
   */
  retry(id: string): string | null {
    const webhook = this.#queries
      .select({ id: webhooks.id, disabledAt: webhooks.disabledAt })
      .from(deliveries)
      .innerJoin(webhooks, eq(webhooks.id, deliveries.webhookId))
      .where(eq(deliveries.id, id))
      .get()
    if (webhook !== undefined && webhook.disabledAt !== null) {
      throw badRequest(
        `The webhook "${webhook.id}" is disabled, because its receiver answered with 410. Switch it on with POST /webhooks/${webhook.id}/enable, then try again.`,
      )
    }
    const [row] = this.#queries
      .update(deliveries)
      .set({ status: 'pending', nextAttemptAt: 0 })
      .where(eq(deliveries.id, id))
      .returning({ webhookId: deliveries.webhookId })
      .all()
    if (row) this.#changes.notify('delivery', id, null)
    return row?.webhookId ?? null
  }

  /** Forgets a webhook that was removed. */
  forget(webhookId: string): void {
    this.#endedSincePrune.delete(webhookId)
  }

  /** Deletes finished deliveries beyond the limit, after every `KEPT_SLACK` of them. */
  #prune(webhookId: string): void {
    // Also prunes after the first delivery since the start, because the number of older ones is unknown.
    const ended = (this.#endedSincePrune.get(webhookId) ?? KEPT_SLACK - 1) + 1
    this.#endedSincePrune.set(webhookId, ended % KEPT_SLACK)
    if (ended < KEPT_SLACK) return
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
