import { createHmac, timingSafeEqual } from 'node:crypto'
import { WebhookVerificationError } from './errors.js'
import type { Returned, Taken, WebhookData } from './shapes.js'
import type { Transport } from './transport.js'

/** How old a webhook may be, and how far in the future, in seconds (standardwebhooks.com). */
const TOLERANCE_S = 300

/** The headers of a request: as `fetch`, Node.js and an inbox have them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/** The body of a webhook: the name of the event, ids, and what belongs to the event. */
export interface WebhookEvent {
  readonly event: string
  readonly created_at: string
  readonly [field: string]: unknown
}

/**
 * Checks that a webhook was signed with a secret, and returns its event (standardwebhooks.com).
 *
 * @param body the body as it was received, byte by byte: do not parse it before
 * @param secret `whsec_…`, from the creation of the webhook
 * @param toleranceSeconds how old it may be
 * @throws WebhookVerificationError if it was not, or is too old
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secret: string,
  { toleranceSeconds = TOLERANCE_S, now = Date.now() }: { toleranceSeconds?: number; now?: number } = {},
): WebhookEvent {
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature')
  const age = Math.abs(now / 1000 - Number(timestamp))
  if (!/^\d+$/.test(timestamp) || age > toleranceSeconds)
    throw new WebhookVerificationError(`Its time, ${timestamp}, is more than ${toleranceSeconds} s from now.`)
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const content = typeof body === 'string' ? Buffer.from(body) : body
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(content).digest()
  const matches = signatures.split(' ').some((signature) => {
    const [version, encoded = ''] = signature.split(',')
    const given = Buffer.from(encoded, 'base64')
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  })
  if (!matches) throw new WebhookVerificationError('It was not signed with this secret, or was changed.')
  return JSON.parse(Buffer.from(content).toString('utf8')) as WebhookEvent
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  const text = typeof value === 'string' ? value : value?.[0]
  if (!text) throw new WebhookVerificationError(`The header ${name} is missing.`)
  return text
}

/** The webhooks of an account. */
export class Webhooks {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first. */
  async list(): Promise<WebhookData[]> {
    return (await this.#transport.json<Returned<'/webhooks', 'get'>>('GET', '/webhooks')).webhooks
  }

  /** Has events sent to a URL. The result has the secret that they are signed with, which no other call returns. */
  create(options: Taken<'/webhooks', 'post'>): Promise<Returned<'/webhooks', 'post', 201>> {
    return this.#transport.json('POST', '/webhooks', options)
  }

  /** Switches a webhook on again. */
  async enable(id: string): Promise<WebhookData> {
    const path = `/webhooks/${encodeURIComponent(id)}/enable`
    return (await this.#transport.json<Returned<'/webhooks/{webhookId}/enable', 'post'>>('POST', path))
      .webhook
  }

  async delete(id: string): Promise<void> {
    await this.#transport.json('DELETE', `/webhooks/${encodeURIComponent(id)}`)
  }

  /** {@link verifyWebhook}, which needs no client. */
  readonly verify = verifyWebhook
}
