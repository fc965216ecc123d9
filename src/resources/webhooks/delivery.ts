import { type Clock, machineNow } from '../../runtime/clock.ts'
import type { Cipher } from '../../storage/cipher.ts'
import { type EventRow, toPayload } from '../events/table.ts'
import { checkDestination, DestinationError, type DestinationRules } from './destination.ts'
import { type Answer, post } from './request.ts'
import { signatureHeaders } from './signature.ts'
import type { AttemptRow, WebhookRow } from './table.ts'

/** What an attempt leaves behind. */
export type Attempt = Omit<AttemptRow, 'deliveryId' | 'number'>

/** What deliveries are made with. */
export interface DeliveryMeans {
  clock: Clock
  cipher: Cipher
  destinations: DestinationRules
  /** As the `user-agent` says. */
  version: string
  /** Milliseconds that an attempt may take in all, of the machine's time. */
  timeoutMs: number
  ca?: string
}

/** What the sealed secret of a webhook belongs to. */
export const secretContext = (webhookId: string): string => `webhooks ${webhookId}`

/**
 * Makes one attempt to deliver an event. It always ends in an attempt to be kept: what went wrong is
 * told in its `error`.
 *
 * @param cancelled ends it; what it returns then is of no use
 */
export async function attemptDelivery(
  event: EventRow,
  webhook: WebhookRow,
  means: DeliveryMeans,
  cancelled: AbortSignal,
): Promise<Attempt> {
  const at = means.clock.now()
  const started = performance.now()
  const body = JSON.stringify(toPayload(event))
  const attempt: Attempt = { at, ms: 0, status: null, error: null, headers: {}, body, answer: null }
  // Not AbortSignal.timeout: its timer could not be taken back.
  const ending = new AbortController()
  const end = () => ending.abort(cancelled.reason)
  cancelled.addEventListener('abort', end)
  const timer = setTimeout(() => ending.abort(new TimedOut(means.timeoutMs)), means.timeoutMs)
  try {
    const secret = means.cipher.open(webhook.secret, secretContext(webhook.id))
    attempt.headers = {
      'content-type': 'application/json',
      'user-agent': `berth/${means.version}`,
      // By the machine's calendar: receivers verify by theirs, wherever this instance's clock has been moved to.
      ...signatureHeaders(secret, event.id, machineNow(), body),
    }
    const answer = await send(webhook.url, attempt, means, ending.signal)
    attempt.status = answer.status
    attempt.answer = answer.text
    attempt.error = refusalOf(answer)
  } catch (error) {
    attempt.error = describe(error)
  } finally {
    clearTimeout(timer)
    cancelled.removeEventListener('abort', end)
  }
  attempt.ms = Math.round((performance.now() - started) * 10) / 10
  return attempt
}

async function send(
  url: string,
  { headers, body }: Attempt,
  { destinations, ca }: DeliveryMeans,
  signal: AbortSignal,
): Promise<Answer> {
  const destination = await orAborted(checkDestination(url, destinations), signal)
  return post({ destination, headers, body, signal, ...(ca ? { ca } : {}) })
}

/** A name server that does not answer must not hold an attempt up. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', abort))
}

class TimedOut extends Error {
  constructor(ms: number) {
    super(`The answer was not complete within ${ms / 1000} s.`)
  }
}

/** Why an answer is no success: null for 2xx. */
function refusalOf({ status }: Answer): string | null {
  if (status >= 200 && status < 300) return null
  const hint = status >= 300 && status < 400 ? ' Redirects are not followed.' : ''
  return `The receiver answered with ${status}.${hint}`
}

function describe(error: unknown): string {
  if (error instanceof DestinationError || error instanceof TimedOut) return error.message
  const { code, message } = error as { code?: string; message?: string }
  return `The receiver was not reached: ${message ?? error}${code && !message?.includes(code) ? ` (${code})` : ''}`
}
