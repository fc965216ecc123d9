import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, machineNow } from '../../runtime/clock.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { orAborted } from '../../runtime/wait.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { EmittedName } from '../events/names.ts'
import { type EventRow, toPayload } from '../events/table.ts'
import { checkDestination, type Destination, DestinationError, type DestinationRules } from './destination.ts'
import { signatureHeaders } from './signature.ts'
import type { AttemptRow, WebhookRow } from './table.ts'

/** The record of an attempt. */
export type Attempt = Omit<AttemptRow, 'deliveryId' | 'number'>

/** What faults make of an attempt. */
export interface DeliveryFault {
  /** Milliseconds that it waits first. */
  readonly delayMs: number
  /** Null to go on. */
  readonly outcome: {
    /** Whether the request is sent, and its response lost. */
    readonly isSent: boolean
    /** Why the attempt failed, unless the response in place of the receiver's is a success. */
    readonly error: string
    readonly response?: WebhookResponse
  } | null
}

/** The faults that tests have set for deliveries. */
export interface DeliveryFaults {
  /** Decides about an attempt, and counts it; null if there are no faults. */
  apply(event: EmittedName, webhook: WebhookRow): DeliveryFault | null
}

/** Dependencies of an attempt. */
export interface DeliveryOptions {
  faults: DeliveryFaults
  clock: Clock
  cipher: Cipher
  destinations: DestinationRules
  /** The version in the `user-agent` header. */
  version: string
  /** Limit of an attempt in milliseconds of real time. */
  timeoutMs: number
  ca?: string
}

/** Returns the context that binds the sealed secret to its webhook. */
export const secretContext = (webhookId: string): string => `webhooks ${webhookId}`

/**
 * Makes one attempt to deliver an event. It never rejects: the record's `error` describes a failure.
 *
 * @param cancelled aborts the attempt; its result is then meaningless
 */
export async function attemptDelivery(
  event: EventRow,
  webhook: WebhookRow,
  options: DeliveryOptions,
  cancelled: AbortSignal,
): Promise<Attempt> {
  const at = options.clock.now()
  const started = performance.now()
  const body = JSON.stringify(toPayload(event))
  const attempt: Attempt = {
    at,
    ms: 0,
    status: null,
    error: null,
    headers: {},
    body,
    response: null,
    responseHeaders: null,
  }
  // AbortSignal.timeout cannot be cancelled.
  const ending = new AbortController()
  const end = () => ending.abort(cancelled.reason)
  cancelled.addEventListener('abort', end)
  const timer = setTimeout(() => ending.abort(new TimedOut(options.timeoutMs)), options.timeoutMs)
  try {
    const secret = options.cipher.open(webhook.secret, secretContext(webhook.id))
    attempt.headers = {
      'content-type': 'application/json',
      'user-agent': `berth/${options.version}`,
      // Uses the machine's calendar, as receivers do to verify, even if this instance's clock was moved.
      ...signatureHeaders(secret, event.id, machineNow(), body),
    }
    const { delayMs, outcome } = options.faults.apply(event.event, webhook) ?? NO_FAULT
    if (delayMs > 0) {
      const { signal } = ending
      await sleep(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
    const sent =
      outcome === null || outcome.isSent
        ? await send(webhook.url, attempt, options, ending.signal)
        : undefined
    const response = outcome === null ? sent : outcome.response
    if (response) {
      attempt.status = response.status
      attempt.response = response.text
      attempt.responseHeaders = { ...response.headers }
    }
    const failure = response ? statusError(response) : ''
    attempt.error = failure === null || outcome === null ? failure : outcome.error
  } catch (error) {
    attempt.error = describe(error)
  } finally {
    clearTimeout(timer)
    cancelled.removeEventListener('abort', end)
  }
  attempt.ms = Math.round((performance.now() - started) * 10) / 10
  return attempt
}

const NO_FAULT: DeliveryFault = { delayMs: 0, outcome: null }

async function send(
  url: string,
  { headers, body }: Attempt,
  { destinations, ca }: DeliveryOptions,
  signal: AbortSignal,
): Promise<WebhookResponse> {
  // A name server that does not respond must not delay the attempt.
  const destination = await orAborted(checkDestination(url, destinations), signal)
  return post({ destination, headers, body, signal, ...(ca ? { ca } : {}) })
}

class TimedOut extends Error {
  constructor(ms: number) {
    super(`The response was not complete within ${ms / 1000} s.`)
  }
}

/** Returns why a status is a failure; null for 2xx. */
function statusError({ status }: WebhookResponse): string | null {
  if (status >= 200 && status < 300) return null
  const hint = status >= 300 && status < 400 ? ' Redirects are not followed.' : ''
  return `The receiver answered with ${status}.${hint}`
}

function describe(error: unknown): string {
  if (error instanceof DestinationError || error instanceof TimedOut) return error.message
  const code = codeOf(error)
  const message = messageOf(error)
  return `The receiver was not reached: ${message}${code && !message.includes(code) ? ` (${code})` : ''}`
}

/** Bytes of a response to read and store, most of its headers, and most characters of a value. @bound peer */
const RESPONSE_LIMIT = 1_024
const MAX_HEADERS = 64
const MAX_HEADER = 1_024

/** The connection failed before anything was sent, so another address of the name may work. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN'])

/** A receiver's response. */
interface WebhookResponse {
  status: number
  headers: Readonly<Record<string, string>>
  /** The first KiB of its body. */
  text: string
}

/** A request to a receiver. */
interface WebhookRequest {
  destination: Destination
  headers: Record<string, string>
  body: string
  /** Certificates of authorities that are trusted in place of the system's. */
  ca?: string
  /** Aborts the request. */
  signal: AbortSignal
}

/**
 * POSTs to one of the checked addresses of a destination, on a connection of its own. The name is not looked up
 * again, so a name server cannot redirect the request. Server name, certificate and Host header use the name.
 * Redirects are not followed, and proxies of the environment are ignored.
 *
 * @throws Error if there is no response, or the signal's reason
 */
async function post(outgoing: WebhookRequest): Promise<WebhookResponse> {
  let failure: unknown
  for (const address of outgoing.destination.addresses) {
    try {
      return await postTo(address, outgoing)
    } catch (error) {
      failure = error
      if (!NOT_CONNECTED.has(codeOf(error) ?? '')) break
    }
  }
  throw failure
}

function postTo(
  address: string,
  { destination, headers, body, ca, signal }: WebhookRequest,
): Promise<WebhookResponse> {
  const { url, name } = destination
  const secure = url.protocol === 'https:'
  const request = secure ? httpsRequest : httpRequest
  const family = address.includes(':') ? 6 : 4
  const isName = name !== address
  const bytes = Buffer.from(body)
  const options: RequestOptions = {
    method: 'POST',
    host: name,
    port: url.port || (secure ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    headers: {
      host: `${name.includes(':') ? `[${name}]` : name}${url.port && `:${url.port}`}`,
      ...headers,
      'content-length': bytes.length,
    },
    // An agent would reuse connections by name.
    agent: false,
    lookup: (_name, { all }, give) => (all ? give(null, [{ address, family }]) : give(null, address, family)),
    // A server name cannot be an address (RFC 6066, 3).
    ...(secure && isName ? { servername: name } : {}),
    ...(ca ? { ca } : {}),
  }
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const sent: ClientRequest = request(options, (response) =>
      readResponse(response).then(resolve, reject).finally(end),
    )
    const abort = () => {
      reject(signal.reason)
      sent.destroy()
    }
    const end = () => {
      signal.removeEventListener('abort', abort)
      sent.destroy()
    }
    signal.addEventListener('abort', abort)
    sent.on('error', (error) => {
      end()
      reject(error)
    })
    sent.end(bytes)
  })
}

/**
 * Returns the first headers of a response, by their names in lower case, repeated ones joined. Leaves out `date`: an
 * attempt has its time by berth's clock.
 */
const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name !== 'date')
      .slice(0, MAX_HEADERS)
      .map(([name, value = '']) => [name, [value].flat().join(', ').slice(0, MAX_HEADER)]),
  )

/** Reads a response to its end or to the limit. */
function readResponse(response: IncomingMessage): Promise<WebhookResponse> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    const done = () => {
      const bytes = Buffer.concat(chunks).subarray(0, RESPONSE_LIMIT)
      resolve({
        status: response.statusCode ?? 0,
        headers: headersOf(response),
        text: bytes.toString('utf8'),
      })
    }
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size < RESPONSE_LIMIT) return
      done()
      response.destroy()
    })
    response.on('end', done)
    response.on('error', reject)
    response.on('close', () => reject(new Error('the connection was closed before the response ended')))
  })
}
