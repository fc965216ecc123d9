import { readCodedBytes } from '../../http/body.ts'
import type { InboxResponse } from './model.ts'
import type { InboxStore } from './store.ts'
import { type SecretSources, verifySignature } from './verify.ts'

/** Most bytes in a request's body. */
const BODY_LIMIT = 1024 * 1024

/** Headers with credentials. An inbox stores only their presence and scheme. */
const CREDENTIAL_HEADERS = ['authorization', 'proxy-authorization', 'cookie'] as const

/** Statuses whose responses have no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** Dependencies of receiving a request. */
interface ReceiveOptions {
  store: InboxStore
  verification: SecretSources
  /** Fires when berth stops, which ends the delay of responses. */
  stopping: AbortSignal
}

/**
 * Receives a request to an inbox: stores it, verifies its signature, and responds as its query asks.
 *
 * @throws BerthError 413, 415; nothing is stored then
 */
export async function receive(
  name: string,
  request: Request,
  { respond = '200', delay_ms: delayMs = 0 }: InboxResponse,
  { store, verification, stopping }: ReceiveOptions,
): Promise<Response> {
  const query = new URL(request.url).search.slice(1)
  const body = Buffer.from(await readCodedBytes(request, BODY_LIMIT))
  const headers = headersOf(request)
  const { verified, reason, webhookId } = verifySignature({ inbox: name, headers, body }, verification)
  const messageId = headers['webhook-id'] ?? null
  const status = statusOf(respond.split(',').map(Number), () => store.attempts(name, query, messageId))
  const kept = { name, query, headers, body, messageId, webhookId, verified, reason, status }
  const { id } = store.add(kept)
  await delay(delayMs, [stopping, request.signal])
  return WITHOUT_BODY.has(status) ? new Response(null, { status }) : Response.json({ id }, { status })
}

function headersOf(request: Request): Record<string, string> {
  const headers = Object.fromEntries(request.headers)
  for (const name of CREDENTIAL_HEADERS) {
    const value = headers[name]
    if (value !== undefined)
      headers[name] = name === 'cookie' ? '***' : value.replace(/^(\S+ +)?.*$/s, '$1***')
  }
  return headers
}

/**
 * Returns the status for an attempt.
 *
 * @param statuses those of successive attempts; the last one is repeated
 * @param before returns the number of earlier attempts; called only if needed
 */
const statusOf = (statuses: readonly number[], before: () => number): number =>
  (statuses.length === 1 ? statuses[0] : (statuses[before()] ?? statuses.at(-1))) ?? 200

/** Resolves after `ms` milliseconds of real time, or as soon as a signal fires. */
async function delay(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  if (ms === 0) return
  const ended = AbortSignal.any([...signals])
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  if (ended.aborted) resolve()
  ended.addEventListener('abort', () => resolve())
  await promise
  clearTimeout(timer)
}
