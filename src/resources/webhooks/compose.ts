import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import { once } from '../../runtime/once.ts'
import type { Random } from '../../runtime/random.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import { Deliveries } from './deliveries.ts'
import type { Resolve } from './destination.ts'
import type { WebhooksService } from './service.ts'

/** Milliseconds that an attempt may take in all. */
const TIMEOUT_MS = 15_000

/** What webhooks find around them, in place of the machine's own. */
export interface WebhookSurroundings {
  /** Looks up the addresses of a name. */
  resolve?: Resolve
  /** Certificates of the authorities that are trusted, as PEM. */
  ca?: string
  /** Milliseconds that an attempt may take in all. */
  timeoutMs?: number
}

/** What webhooks are made of. */
interface WebhookParts {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  cipher: Cipher
  outbox: Outbox
  changes: Notifier
  version: string
  /** The randomness of each purpose. */
  randomFor: (purpose: string) => Random
  /** Whether http and loopback are allowed. */
  allowLocal: boolean
  surroundings: WebhookSurroundings | undefined
}

/** Subscriptions, and what delivers to them. */
export function composeWebhooks({ randomFor, allowLocal, surroundings, ...parts }: WebhookParts): {
  /** Loaded when it is first asked for. */
  webhooks: () => Promise<WebhooksService>
  deliveries: Deliveries
} {
  const { resolve = lookUp, ca, timeoutMs = TIMEOUT_MS } = surroundings ?? {}
  const destinations = { allowLocal, resolve }
  const deliveries = new Deliveries({
    ...parts,
    destinations,
    timeoutMs,
    randomOf: (attempt) => randomFor(`webhook_retries ${attempt}`),
    ...(ca ? { ca } : {}),
  })
  const webhooks = once(async () => {
    const { WebhooksService } = await import('./service.ts')
    return new WebhooksService({
      ...parts,
      destinations,
      random: randomFor('webhook_secret'),
      onDeleted(id) {
        deliveries.forget(id)
        parts.changes.notify()
      },
    })
  })
  return { webhooks, deliveries }
}

/** All addresses of a name, as this machine resolves it. */
async function lookUp(name: string): Promise<string[]> {
  const { lookup } = await import('node:dns/promises')
  return (await lookup(name, { all: true })).map(({ address }) => address)
}
