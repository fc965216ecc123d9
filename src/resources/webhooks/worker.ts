import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Random } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import { type Attempt, attemptDelivery, type DeliveryMeans } from './delivery.ts'
import { FanOut } from './fan-out.ts'
import { Pace } from './pace.ts'
import { DeliveryQueue, type Due, type Verdict } from './queue.ts'
import { retryWait } from './retry.ts'
import { Slots } from './slots.ts'
import type { DeliveryRow } from './table.ts'

/** How long after a fault of berth's own (a full disk) a webhook is tried again. */
const AFTER_FAULT_MS = 5_000

/** What the worker needs. */
export interface WorkerDependencies extends DeliveryMeans {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  changes: Notifier
  /** For the jitter of the retries of one delivery: in which order attempts end changes no other's. */
  randomOf: (attempt: string) => Random
}

/**
 * Decides who is sent what and when. A webhook has at most one attempt under way, and those that
 * have something to be sent take turns, so that neither one that fails nor one with a long queue
 * holds another up.
 */
export class DeliveryWorker {
  readonly #dependencies: WorkerDependencies
  readonly #fanOut: FanOut
  readonly #queue: DeliveryQueue
  readonly #slots = new Slots(() => this.#pump())
  readonly #pace = new Pace((webhookId) => this.#enqueue([webhookId]))
  /** Webhooks that may have something to be sent, in the order of their turns. */
  readonly #ready = new Set<string>()
  readonly #underWay = new Map<string, { cancel: AbortController; ended: Promise<void> }>()
  /** Webhooks that have retries due, and of these the ones whose last attempt was a retry. */
  readonly #withRetries = new Set<string>()
  readonly #hadRetry = new Set<string>()
  readonly #whenIdle: (() => void)[] = []
  #timer: { at: number; timer: Timer } | null = null
  /** Whether further events wait to be made deliveries of. */
  #more = false
  #calendar: number
  #stopListening: () => void
  #stopped = false

  constructor(dependencies: WorkerDependencies) {
    const { queries, clock, changes } = dependencies
    this.#dependencies = dependencies
    this.#fanOut = new FanOut(dependencies)
    this.#queue = new DeliveryQueue(queries, changes)
    this.#calendar = clock.now() - clock.elapsed()
    this.#stopListening = clock.onCorrection(() => this.#followCalendar())
  }

  /** Goes on with what an earlier berth left. */
  start(): void {
    const now = this.#dependencies.clock.now()
    this.#queue.limitRetries(now)
    this.#fan()
    this.#enqueue(this.#queue.webhooksWithEvents())
    this.#enqueueRetries()
    this.#arm()
  }

  /** Events have come. */
  wake(): void {
    if (!this.#stopped) this.#fan()
  }

  /** Has a delivery attempted at once. Returns whether there is one of this id. */
  retry(deliveryId: string): boolean {
    const webhookId = this.#queue.retry(deliveryId)
    if (webhookId === null) return false
    this.#enqueue([webhookId])
    return true
  }

  /** A webhook was removed: its attempt under way ends, and nothing more is sent to it. */
  forget(webhookId: string): void {
    this.#ready.delete(webhookId)
    this.#hadRetry.delete(webhookId)
    this.#withRetries.delete(webhookId)
    this.#queue.forget(webhookId)
    this.#pace.forget(webhookId)
    this.#underWay.get(webhookId)?.cancel.abort(new Error('The webhook was deleted.'))
  }

  /** Resolves when nothing is being sent or about to be, or after the time that one attempt may take. */
  idle(): Promise<void> {
    if (!this.#busy) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#dependencies.timeoutMs)
    this.#whenIdle.push(resolve)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Ends all attempts; those under way are made again at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#stopListening()
    this.#timer?.timer.cancel()
    this.#ready.clear()
    this.#more = false
    this.#pace.stop()
    const ended = [...this.#underWay.values()].map(({ cancel, ended }) => {
      cancel.abort(new Error('berth stops.'))
      return ended
    })
    await Promise.all(ended)
  }

  /** Makes deliveries of the events that have come, some at a time. */
  #fan(): void {
    const { webhookIds, more } = this.#fanOut.step()
    this.#more = more
    this.#enqueue(webhookIds)
    if (more) setImmediate(() => this.wake())
  }

  #enqueue(webhookIds: Iterable<string>): void {
    if (this.#stopped) return
    for (const id of webhookIds) {
      if (!this.#underWay.has(id) && !this.#pace.holds(id)) this.#ready.add(id)
    }
    this.#pump()
  }

  #enqueueRetries(): void {
    const webhookIds = this.#queue.webhooksWithRetries(this.#dependencies.clock.now())
    for (const id of webhookIds) this.#withRetries.add(id)
    this.#enqueue(webhookIds)
  }

  /** Begins attempts while there is room, one webhook after the other. */
  #pump(): void {
    for (const webhookId of this.#ready) {
      if (this.#stopped || !this.#slots.free) break
      this.#ready.delete(webhookId)
      const due = this.#next(webhookId)
      if (due) this.#begin(due)
    }
    if (this.#busy) return
    for (const tell of this.#whenIdle.splice(0)) tell()
  }

  /** What a webhook is sent next: events and retries that are due take turns, so that neither holds the other up. */
  #next(webhookId: string): Due | undefined {
    if (!this.#withRetries.has(webhookId)) return this.#queue.nextEvent(webhookId)
    const event = this.#hadRetry.delete(webhookId) ? this.#queue.nextEvent(webhookId) : undefined
    if (event) return event
    const retry = this.#queue.nextRetry(webhookId, this.#dependencies.clock.now())
    if (retry) this.#hadRetry.add(webhookId)
    else this.#withRetries.delete(webhookId)
    return retry ?? this.#queue.nextEvent(webhookId)
  }

  #begin(due: Due): void {
    const cancel = new AbortController()
    this.#underWay.set(due.webhook.id, { cancel, ended: this.#attempt(due, cancel.signal) })
  }

  async #attempt(due: Due, cancelled: AbortSignal): Promise<void> {
    const { id } = due.webhook
    const release = this.#slots.take()
    let goesOn = false
    try {
      const attempt = await attemptDelivery(due.event, due.webhook, this.#dependencies, cancelled)
      if (cancelled.aborted) return
      await this.#settle(due, attempt)
      this.#pace.ended(id, attempt.error !== null)
      goesOn = !cancelled.aborted && !this.#pace.holds(id)
    } catch (error) {
      this.#dependencies.logger.error('a webhook delivery could not be recorded', { webhookId: id, error })
      this.#dependencies.clock.after(AFTER_FAULT_MS, () => this.#enqueue([id]))
    } finally {
      release()
      this.#underWay.delete(id)
      // Not before: of one webhook no two attempts may be under way.
      if (goesOn) this.#ready.add(id)
      this.#pump()
    }
  }

  async #settle(due: Due, attempt: Attempt): Promise<void> {
    const { delivery, webhook } = due
    const verdict = this.#verdict(delivery, attempt)
    await this.#queue.record(due, attempt, verdict)
    const { status, ms, error } = attempt
    this.#dependencies.logger.debug('webhook delivery attempted', {
      deliveryId: delivery.id,
      webhookId: webhook.id,
      status,
      ms,
      ...(error ? { error } : {}),
    })
    if (verdict.status === 'pending') this.#armFor(verdict.nextAttemptAt)
  }

  #verdict({ id, attempts }: DeliveryRow, { error }: Attempt): Verdict {
    if (error === null) return { status: 'delivered' }
    const { clock, randomOf } = this.#dependencies
    const made = attempts + 1
    const wait = retryWait(made, randomOf(`${id} ${made}`))
    return wait === null ? { status: 'failed' } : { status: 'pending', nextAttemptAt: clock.now() + wait }
  }

  /** Sets the one timer for the next retry. */
  #arm(): void {
    const at = this.#queue.nextRetryAt(this.#dependencies.clock.now())
    if (at !== null) this.#armFor(at)
  }

  #armFor(at: number): void {
    if (this.#stopped || (this.#timer && this.#timer.at <= at)) return
    this.#timer?.timer.cancel()
    const { clock } = this.#dependencies
    this.#timer = { at, timer: clock.after(at - clock.now(), () => this.#fire()) }
  }

  /** Retries are due. Resolves when they were made, or after the time that one may take. */
  async #fire(): Promise<void> {
    this.#timer = null
    if (this.#stopped) return
    this.#enqueueRetries()
    this.#arm()
    await this.idle()
  }

  /** Whether anything is being sent or about to be. */
  get #busy(): boolean {
    return this.#more || this.#ready.size + this.#underWay.size + this.#pace.pausing > 0
  }

  /** The calendar was corrected while no time passed: retries wait as long as before. */
  #followCalendar(): void {
    const { clock } = this.#dependencies
    const calendar = clock.now() - clock.elapsed()
    this.#queue.shiftRetries(calendar - this.#calendar)
    this.#calendar = calendar
    this.#timer?.timer.cancel()
    this.#timer = null
    this.#arm()
  }
}
