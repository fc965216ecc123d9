import { sql } from 'drizzle-orm'
import type { Random } from '../../runtime/random.ts'
import type { Service } from '../../runtime/service.ts'
import type { Outbox } from '../events/outbox.ts'
import type { DestinationRules, Resolve } from './destination.ts'
import type { DeliveryWorker, WorkerDependencies } from './worker.ts'

/** Milliseconds that an attempt may take in all. */
const TIMEOUT_MS = 15_000

/** What webhooks use in place of the machine's own. */
export interface WebhookOverrides {
  /** Looks up the addresses of a name. */
  resolve?: Resolve
  /** Certificates of the trusted authorities, as PEM. */
  ca?: string
  /** Milliseconds that an attempt may take in all. */
  timeoutMs?: number
}

/** What the deliveries need. */
export interface DeliveriesDependencies
  extends Omit<WorkerDependencies, 'destinations' | 'timeoutMs' | 'ca' | 'randomOf'> {
  outbox: Outbox
  /** Returns the randomness of each purpose. */
  randomFor: (purpose: string) => Random
  /** Whether webhooks may go to this machine, and without TLS. */
  allowLocal: boolean
  overrides: WebhookOverrides | undefined
}

/**
 * Delivers what the outbox holds. The worker, and the libraries behind it, are loaded when there is a
 * first webhook to deliver to: a start does not pay for them.
 */
export class Deliveries implements Service {
  readonly name = 'webhook deliveries'
  /** Where webhooks may go. */
  readonly destinations: DestinationRules
  readonly #dependencies: DeliveriesDependencies
  readonly #stopListening: () => void
  readonly #stopFollowing: () => void
  #loading: Promise<DeliveryWorker> | undefined
  #worker: DeliveryWorker | undefined
  /** Whether events have come since a moved clock stood here last. */
  #woken = false
  #stopped = false

  constructor(dependencies: DeliveriesDependencies) {
    const { resolve = lookUp } = dependencies.overrides ?? {}
    this.#dependencies = dependencies
    this.destinations = { allowLocal: dependencies.allowLocal, resolve }
    this.#stopListening = dependencies.outbox.subscribe(() => this.#wake())
    this.#stopFollowing = dependencies.clock.onStep(() => this.#sent())
  }

  /** Goes on with what an earlier berth left, where there is something to go on with. */
  start(): void {
    this.#wake()
  }

  /** Has a delivery attempted at once, whatever became of it. Resolves to whether there is one of this id. */
  async retry(deliveryId: string): Promise<boolean> {
    return (await this.#load()).retry(deliveryId)
  }

  /** A webhook was removed. */
  forget(webhookId: string): void {
    this.#worker?.forget(webhookId)
  }

  /** Ends all attempts; those under way are made again at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#stopListening()
    this.#stopFollowing()
    await (await this.#loading?.catch(() => undefined))?.stop()
  }

  #wake(): void {
    this.#woken = true
    this.#worker?.wake()
    if (this.#stopped || this.#loading || !this.#hasWebhooks()) return
    this.#load().catch((error) => this.#dependencies.logger.error('webhooks cannot be delivered', { error }))
  }

  /** Resolves when the events of this moment were sent; at once where none came. */
  async #sent(): Promise<void> {
    if (!this.#woken) return
    this.#woken = false
    await this.#loading?.catch(() => undefined)
    await this.#worker?.idle()
  }

  #load(): Promise<DeliveryWorker> {
    this.#loading ??= import('./worker.ts').then(({ DeliveryWorker }) => {
      const { randomFor, overrides } = this.#dependencies
      const { ca, timeoutMs = TIMEOUT_MS } = overrides ?? {}
      const worker = new DeliveryWorker({
        ...this.#dependencies,
        destinations: this.destinations,
        timeoutMs,
        randomOf: (attempt) => randomFor(`webhook_retries ${attempt}`),
        ...(ca ? { ca } : {}),
      })
      this.#worker = worker
      if (!this.#stopped) worker.start()
      return worker
    })
    return this.#loading
  }

  #hasWebhooks(): boolean {
    const { queries } = this.#dependencies
    return queries.values(sql`SELECT 1 FROM webhooks LIMIT 1`).length > 0
  }
}

/** Looks up all addresses of a name, as this machine resolves it. */
async function lookUp(name: string): Promise<string[]> {
  const { lookup } = await import('node:dns/promises')
  return (await lookup(name, { all: true })).map(({ address }) => address)
}
