import { asc, like, sql } from 'drizzle-orm'
import { Webhook } from 'standardwebhooks'
import { readCodedBytes } from '../../http/body.ts'
import { secretContext } from '../../resources/webhooks/delivery.ts'
import { webhooks } from '../../resources/webhooks/table.ts'
import { pause } from '../../runtime/wait.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Queries } from '../../storage/database.ts'
import type { InboxResponse } from './model.ts'
import type { InboxStore } from './store.ts'

/** Most bytes in a request's body. @bound user */
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
  if (delayMs > 0) await pause(delayMs, stopping, request.signal)
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

/** The result of a verification. */
interface SignatureResult {
  /** Null if no known secret can verify it. */
  verified: boolean | null
  reason: string
  /** The webhook whose secret made the signature. */
  webhookId: string | null
}

/** A request with a signature. */
interface SignedRequest {
  /** The inbox that received it. */
  inbox: string
  headers: Readonly<Record<string, string>>
  body: Buffer
}

/** Sources of the secrets. */
interface SecretSources {
  queries: Queries
  cipher: Cipher
  /** The secret of `berth listen`. */
  listenSecret: string
}

/** The headers of a signature (Standard Webhooks, "Webhook headers"). */
const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const

/** Messages of the library about a wrong time, and their explanations. */
const TIME_PROBLEMS: Readonly<Record<string, string>> = {
  'Message timestamp too old': 'The webhook-timestamp is more than five minutes old.',
  'Message timestamp too new': 'The webhook-timestamp is more than five minutes in the future.',
  'Invalid Signature Headers': 'The webhook-timestamp is no number of seconds since 1970.',
}

/**
 * Verifies a request as a receiver would, with the library of Standard Webhooks. It tries the secret of each webhook
 * whose URL leads to the inbox, on any host, and that of `berth listen`.
 */
function verifySignature({ inbox, headers, body }: SignedRequest, sources: SecretSources): SignatureResult {
  const missing = HEADERS.filter((name) => !headers[name])
  if (missing.length === HEADERS.length) {
    return unsure(`It is not signed: it has none of the headers ${HEADERS.join(', ')}.`)
  }
  if (missing.length > 0)
    return wrong(`It is not wholly signed: the header ${missing.join(', ')} is missing.`)
  const text = body.toString()
  const candidates = webhooksTo(inbox, sources.queries)
  for (const { id, secret } of candidates) {
    const problem = problemOf(sources.cipher.open(secret, secretContext(id)), text, headers)
    if (problem === null) return right(`Signed with the secret of the webhook ${id}.`, id)
    if (TIME_PROBLEMS[problem]) return wrong(TIME_PROBLEMS[problem])
  }
  const problem = problemOf(sources.listenSecret, text, headers)
  if (problem === null) return right('Signed with the secret of "berth listen".')
  if (TIME_PROBLEMS[problem]) return wrong(TIME_PROBLEMS[problem])
  if (candidates.length === 0) {
    return unsure(
      'No webhook of this instance leads to this inbox: the secret of the signature is not known.',
    )
  }
  const ids = candidates.map(({ id }) => id).join(', ')
  return wrong(
    `The signature was made for another body, id or time, or with another secret than that of ${ids}, or of "berth listen".`,
  )
}

const right = (reason: string, webhookId: string | null = null): SignatureResult => ({
  verified: true,
  reason,
  webhookId,
})
const wrong = (reason: string): SignatureResult => ({ verified: false, reason, webhookId: null })
const unsure = (reason: string): SignatureResult => ({ verified: null, reason, webhookId: null })

/** Returns the library's message about an invalid signature; null if it is valid. */
function problemOf(secret: string, text: string, headers: SignedRequest['headers']): string | null {
  try {
    new Webhook(secret).verify(text, { ...headers }, { jsonParse: false })
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Returns the webhooks whose URL leads to an inbox. */
function webhooksTo(inbox: string, queries: Queries) {
  const path = `/_berth/inbox/${inbox}`
  const { id, url, secret } = webhooks
  return queries
    .select({ id, url, secret })
    .from(webhooks)
    .where(like(url, '%/_berth/inbox/%'))
    .orderBy(asc(sql`rowid`))
    .all()
    .filter((webhook) => URL.parse(webhook.url)?.pathname.replace(/\/$/, '') === path)
}
