import { sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Random } from '../../runtime/random.ts'
import type { Service } from '../../runtime/service.ts'
import { interfaceAddressesReader } from '../../system/interface-addresses.ts'
import type { DestinationRules, LocalWebhooks, Resolve } from './destination.ts'
import type { DeliveryWorker, WorkerDependencies } from './worker.ts'

/** Default limit of an attempt in milliseconds. */
const TIMEOUT_MS = 15_000

/** Replaces parts of the machine that webhooks use. */
export interface WebhookOverrides {
  /** Looks up the addresses of a name. */
  resolve?: Resolve
  /** Certificates of the trusted authorities, as PEM. */
  ca?: string
  /** Limit of an attempt in milliseconds. */
  timeoutMs?: number
}

/** Dependencies of the deliveries. */
interface DeliveriesDependencies
  extends Omit<WorkerDependencies, 'destinations' | 'timeoutMs' | 'ca' | 'randomOf'> {
  /** Returns the randomness for a purpose. */
  randomFor: (purpose: string) => Random
  localWebhooks: LocalWebhooks
  overrides: WebhookOverrides | undefined
}

/**
 * Delivers the events in the outbox. The worker and its libraries are loaded with the first webhook, to keep the
 * start quick.
 */
export class Deliveries implements Service {
  readonly name = 'webhook deliveries'
  /** Determines the allowed destinations. */
  readonly destinations: DestinationRules
  readonly #dependencies: DeliveriesDependencies
  readonly #unsubscribeOutbox: () => void
  readonly #unsubscribeClock: () => void
  #loading: Promise<DeliveryWorker> | undefined
  #worker: DeliveryWorker | undefined
  /** Whether events were emitted since the last step of the clock. */
  #hasNewEvents = false
  #stopped = false

  constructor(dependencies: DeliveriesDependencies) {
    const names = once(async () => new (await import('../../runtime/name-resolver.ts')).NameResolver())
    const overrides: WebhookOverrides = dependencies.overrides ?? {}
    const { resolve = async (name) => (await names()).lookUp(name, { search: true }) } = overrides
    this.#dependencies = dependencies
    const { localWebhooks } = dependencies
    this.destinations = {
      get allowLocal() {
        return localWebhooks.allowed
      },
      resolve,
      ownAddresses: interfaceAddressesReader(),
    }
    this.#unsubscribeOutbox = dependencies.outbox.subscribe(() => this.#wake())
    this.#unsubscribeClock = dependencies.clock.onStep(() => this.#whenSent())
  }

  /** Resumes the deliveries that an earlier berth left, if there are any. */
  start(): void {
    this.#wake()
  }

  /**
   * Schedules a delivery for an immediate attempt, with any status.
   *
   * @returns whether the delivery exists
   * @throws BerthError 400 if its webhook is disabled
   */
  async retry(deliveryId: string): Promise<boolean> {
    return (await this.#load()).retry(deliveryId)
  }

  /** Stops deliveries to a webhook that was removed. */
  forget(webhookId: string): void {
    this.#worker?.forget(webhookId)
  }

  /** Aborts all attempts. The next start repeats them. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribeOutbox()
    this.#unsubscribeClock()
    await (await this.#loading?.catch(() => undefined))?.stop()
  }

  #wake(): void {
    this.#hasNewEvents = true
    this.#worker?.wake()
    if (this.#stopped || this.#loading || !this.#hasWebhooks()) return
    this.#load().catch((error) => this.#dependencies.logger.error('webhooks cannot be delivered', { error }))
  }

  /** Resolves when the events emitted so far were sent; at once if there are none. */
  async #whenSent(): Promise<void> {
    if (!this.#hasNewEvents) return
    this.#hasNewEvents = false
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
