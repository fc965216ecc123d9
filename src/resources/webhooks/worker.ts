import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import { AttemptSlots, FailurePauses } from './attempt-limits.ts'
import { type Attempt, attemptDelivery, type DeliveryOptions } from './delivery.ts'
import { FanOut } from './fan-out.ts'
import { type DeliveryOutcome, DeliveryQueue, type DueDelivery } from './queue.ts'
import { requestedWait, retryWait } from './retry.ts'
import type { DeliveryRow } from './table.ts'

/** Milliseconds after which a webhook is tried again if an attempt could not be stored, as on a full disk. */
const AFTER_FAULT_MS = 5_000

/** The status by which a receiver says that it is gone for good (Standard Webhooks, "Operational considerations"). */
const GONE = 410

/** Dependencies of the worker. */
export interface WorkerDependencies extends DeliveryOptions {
  outbox: Outbox
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  changes: Changes
  /**
   * Returns the source of a delivery's jitter. Each attempt has its own, so the order in which attempts end changes
   * no other.
   */
  randomOf: (attempt: string) => Random
}

/**
 * Schedules the deliveries of each webhook. A webhook has at most one running attempt, and webhooks take turns, so
 * neither a failing one nor a long queue delays the others.
 */
export class DeliveryWorker {
  readonly #dependencies: WorkerDependencies
  readonly #fanOut: FanOut
  readonly #queue: DeliveryQueue
  readonly #slots = new AttemptSlots(() => this.#beginAttempts())
  readonly #pauses = new FailurePauses((webhookId) => this.#enqueue([webhookId]))
  /** Webhooks that may have deliveries, in the order of their turns. */
  readonly #ready = new Set<string>()
  readonly #running = new Map<string, { cancel: AbortController; ended: Promise<void> }>()
  /** Webhooks with retries that are due, and those whose last attempt was a retry. */
  readonly #withRetries = new Set<string>()
  readonly #hadRetry = new Set<string>()
  readonly #whenIdle: (() => void)[] = []
  #timer: { at: number; timer: Timer } | null = null
  /** Whether further events wait for the fan-out. */
  #hasMoreEvents = false
  #calendar: number
  #unsubscribe: () => void
  #stopped = false

  constructor(dependencies: WorkerDependencies) {
    const { clock } = dependencies
    this.#dependencies = dependencies
    this.#fanOut = new FanOut(dependencies)
    this.#queue = new DeliveryQueue(dependencies)
    this.#calendar = clock.now() - clock.elapsed()
    this.#unsubscribe = clock.onCorrection(() => this.#shiftRetries())
  }

  /** Resumes the deliveries that an earlier berth left. */
  start(): void {
    const now = this.#dependencies.clock.now()
    this.#queue.limitRetries(now)
    this.#fanOutEvents()
    this.#enqueue(this.#queue.webhooksWithEvents())
    this.#enqueueRetries()
    this.#scheduleRetry()
  }

  /** Processes new events. */
  wake(): void {
    if (!this.#stopped) this.#fanOutEvents()
  }

  /**
   * Schedules a delivery for an immediate attempt.
   *
   * @returns whether the delivery exists
   * @throws BerthError 400 if its webhook is disabled
   */
  retry(deliveryId: string): boolean {
    const webhookId = this.#queue.retry(deliveryId)
    if (webhookId === null) return false
    this.#enqueue([webhookId])
    return true
  }

  /** Stops deliveries to a webhook that was removed and aborts its running attempt. */
  forget(webhookId: string): void {
    this.#ready.delete(webhookId)
    this.#hadRetry.delete(webhookId)
    this.#withRetries.delete(webhookId)
    this.#queue.forget(webhookId)
    this.#pauses.forget(webhookId)
    this.#running.get(webhookId)?.cancel.abort(new Error('The webhook was deleted.'))
  }

  /** Resolves when no attempt is running or about to start, at the latest after the time limit of an attempt. */
  idle(): Promise<void> {
    if (!this.#busy) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#dependencies.timeoutMs)
    this.#whenIdle.push(resolve)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Aborts all attempts. The next start repeats them. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe()
    this.#timer?.timer.cancel()
    this.#ready.clear()
    this.#hasMoreEvents = false
    this.#pauses.stop()
    const ended = [...this.#running.values()].map(({ cancel, ended }) => {
      cancel.abort(new Error('berth stops.'))
      return ended
    })
    await Promise.all(ended)
  }

  /** Creates deliveries for new events, a batch at a time. */
  #fanOutEvents(): void {
    const { webhookIds, hasMore } = this.#fanOut.step()
    this.#hasMoreEvents = hasMore
    this.#enqueue(webhookIds)
    if (hasMore) setImmediate(() => this.wake())
  }

  #enqueue(webhookIds: Iterable<string>): void {
    if (this.#stopped) return
    for (const id of webhookIds) {
      if (!this.#running.has(id) && !this.#pauses.isPaused(id)) this.#ready.add(id)
    }
    this.#beginAttempts()
  }

  #enqueueRetries(): void {
    const webhookIds = this.#queue.webhooksWithRetries(this.#dependencies.clock.now())
    for (const id of webhookIds) this.#withRetries.add(id)
    this.#enqueue(webhookIds)
  }

  /** Begins attempts while there are free slots, one webhook after another. */
  #beginAttempts(): void {
    for (const webhookId of this.#ready) {
      if (this.#stopped || !this.#slots.hasFree) break
      this.#ready.delete(webhookId)
      const due = this.#next(webhookId)
      if (due) this.#begin(due)
    }
    if (this.#busy) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  /** Returns the next delivery to a webhook. Events and due retries take turns, so neither delays the other. */
  #next(webhookId: string): DueDelivery | undefined {
    if (!this.#withRetries.has(webhookId)) return this.#queue.nextEvent(webhookId)
    const event = this.#hadRetry.delete(webhookId) ? this.#queue.nextEvent(webhookId) : undefined
    if (event) return event
    const retry = this.#queue.nextRetry(webhookId, this.#dependencies.clock.now())
    if (retry) this.#hadRetry.add(webhookId)
    else this.#withRetries.delete(webhookId)
    return retry ?? this.#queue.nextEvent(webhookId)
  }

  #begin(due: DueDelivery): void {
    const cancel = new AbortController()
    this.#running.set(due.webhook.id, { cancel, ended: this.#attempt(due, cancel.signal) })
  }

  async #attempt(due: DueDelivery, cancelled: AbortSignal): Promise<void> {
    const { id } = due.webhook
    const release = this.#slots.take()
    let continues = false
    try {
      const attempt = await attemptDelivery(due.event, due.webhook, this.#dependencies, cancelled)
      if (cancelled.aborted) return
      await this.#recordAttempt(due, attempt)
      this.#pauses.attemptEnded(id, attempt.error !== null)
      continues = !cancelled.aborted && !this.#pauses.isPaused(id)
    } catch (error) {
      this.#dependencies.logger.error('a webhook delivery could not be recorded', { webhookId: id, error })
      const purpose = { name: 'webhook.retry', id }
      this.#dependencies.clock.after(AFTER_FAULT_MS, () => this.#enqueue([id]), purpose)
    } finally {
      release()
      this.#running.delete(id)
      // Only now: a webhook must not have two running attempts.
      if (continues) this.#ready.add(id)
      this.#beginAttempts()
    }
  }

  async #recordAttempt(due: DueDelivery, attempt: Attempt): Promise<void> {
    const { delivery, webhook } = due
    const outcome = this.#outcome(delivery, attempt)
    await this.#queue.record(due, attempt, outcome)
    const { status, ms, error } = attempt
    this.#dependencies.logger.debug('webhook delivery attempted', {
      deliveryId: delivery.id,
      webhookId: webhook.id,
      status,
      ms,
      ...(error ? { error } : {}),
    })
    if (outcome.status === 'pending') this.#scheduleAt(outcome.nextAttemptAt, delivery.id)
  }

  #outcome({ id, attempts }: DeliveryRow, { error, status, responseHeaders }: Attempt): DeliveryOutcome {
    if (error === null) return { status: 'delivered' }
    if (status === GONE) return { status: 'disabled' }
    const { clock, randomOf } = this.#dependencies
    const made = attempts + 1
    const scheduled = retryWait(made, randomOf(`${id} ${made}`))
    if (scheduled === null) return { status: 'failed' }
    const now = clock.now()
    const requested = requestedWait(status, responseHeaders?.['retry-after'], now)
    return { status: 'pending', nextAttemptAt: now + (requested ?? scheduled) }
  }

  /** Sets the timer for the next retry. */
  #scheduleRetry(): void {
    const next = this.#queue.earliestRetry(this.#dependencies.clock.now())
    if (next !== null) this.#scheduleAt(next.at, next.id)
  }

  #scheduleAt(at: number, deliveryId: string): void {
    if (this.#stopped || (this.#timer && this.#timer.at <= at)) return
    this.#timer?.timer.cancel()
    const { clock } = this.#dependencies
    const purpose = { name: 'delivery.retry', id: deliveryId }
    this.#timer = { at, timer: clock.after(at - clock.now(), () => this.#runRetries(), purpose) }
  }

  /** Begins the due retries. Resolves when they have ended, at the latest after the time limit of an attempt. */
  async #runRetries(): Promise<void> {
    this.#timer = null
    if (this.#stopped) return
    this.#enqueueRetries()
    this.#scheduleRetry()
    await this.idle()
  }

  /** Whether an attempt is running or about to start. */
  get #busy(): boolean {
    return this.#hasMoreEvents || this.#ready.size + this.#running.size + this.#pauses.count > 0
  }

  /** Moves the retries after a correction of the calendar, so they wait as long as before. */
  #shiftRetries(): void {
    const { clock } = this.#dependencies
    const calendar = clock.now() - clock.elapsed()
    this.#queue.shiftRetries(calendar - this.#calendar)
    this.#calendar = calendar
    this.#timer?.timer.cancel()
    this.#timer = null
    this.#scheduleRetry()
  }
}
