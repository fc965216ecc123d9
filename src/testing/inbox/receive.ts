import { readBytes } from '../../http/body.ts'
import { delayed, readReply, statusOf } from './reply.ts'
import type { InboxStore } from './store.ts'
import { type Verification, verifySignature } from './verify.ts'

/** Bytes that a request's body may have. */
const BODY_LIMIT = 1024 * 1024

/** Headers that tell who somebody is: an inbox keeps that they were there, and their scheme. */
const CREDENTIALS = ['authorization', 'proxy-authorization', 'cookie'] as const

/** Statuses whose answers have no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** What a request to an inbox is taken with. */
export interface Receiving {
  store: InboxStore
  verification: Verification
  /** Fires when berth stops: nobody waits for an answer that is put off. */
  stopping: AbortSignal
}

/**
 * Takes a request to an inbox: keeps it, says whether its signature is right, and answers as its query wishes.
 *
 * @throws BerthError 400, 413; nothing is kept then
 */
export async function receive(
  name: string,
  request: Request,
  { store, verification, stopping }: Receiving,
): Promise<Response> {
  const query = new URL(request.url).search.slice(1)
  const reply = readReply(new URLSearchParams(query))
  const body = Buffer.from(await readBytes(request, BODY_LIMIT))
  const headers = headersOf(request)
  const { verified, reason, webhookId } = verifySignature({ inbox: name, headers, body }, verification)
  const messageId = headers['webhook-id'] ?? null
  const status = statusOf(reply, () => store.attempts(name, messageId))
  const kept = { name, query, headers, body, messageId, webhookId, verified, reason, status }
  const { id } = store.add(kept)
  await delayed(reply.delayMs, [stopping, request.signal])
  return WITHOUT_BODY.has(status) ? new Response(null, { status }) : Response.json({ id }, { status })
}

function headersOf(request: Request): Record<string, string> {
  const headers = Object.fromEntries(request.headers)
  for (const name of CREDENTIALS) {
    const value = headers[name]
    if (value !== undefined)
      headers[name] = name === 'cookie' ? '***' : value.replace(/^(\S+ +)?.*$/s, '$1***')
  }
  return headers
}
