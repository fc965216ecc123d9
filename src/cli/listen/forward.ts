import { payloadOf } from '../../resources/events/payload.ts'
import { signatureHeaders } from '../../resources/webhooks/signature.ts'
import { machineNow } from '../../runtime/clock.ts'
import { versionInfo } from '../version.ts'
import type { ListenedEvent } from './events.ts'

/** Time limit of a response in milliseconds, the same as for a webhook. */
const TIMEOUT_MS = 15_000

/** Bytes of a response to read. @bound program */
const RESPONSE_LIMIT = 1_024

/** The result of forwarding an event. */
export interface ForwardResult {
  /** Null if there was no response. */
  status: number | null
  ms: number
  /** Why it counts as failed; null for 2xx. */
  error: string | null
  /** The first KiB of the response. */
  response: string
}

/** Target and secret of forwarded events. */
interface ForwardOptions {
  url: string
  secret: string
  /** Aborts the request. */
  signal: AbortSignal
  timeoutMs?: number
}

/**
 * Sends an event as a webhook would: with the same body, signed in the same way (Standard Webhooks).
 *
 * @throws the signal's reason if it aborts; other failures are in the result
 */
export async function forward(
  event: ListenedEvent,
  { url, secret, signal, timeoutMs = TIMEOUT_MS }: ForwardOptions,
): Promise<ForwardResult> {
  const body = JSON.stringify(payloadOf(event.event, event.data, event.created_at))
  const began = performance.now()
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), timeoutMs)
  const forwarded: ForwardResult = { status: null, ms: 0, error: null, response: '' }
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `berth/${versionInfo().version}`,
        ...signatureHeaders(secret, event.id, machineNow(), body),
      },
      body,
      redirect: 'manual',
      // A receiver under development restarts often, which breaks kept connections.
      keepalive: false,
      signal: AbortSignal.any([signal, timeout.signal]),
    })
    forwarded.status = response.status
    forwarded.error = refusalOf(response)
    forwarded.response = await readPrefix(response)
  } catch (error) {
    signal.throwIfAborted()
    forwarded.error = timeout.signal.aborted
      ? `The response was not complete within ${timeoutMs / 1_000} s.`
      : problemOf(error)
  } finally {
    clearTimeout(timer)
  }
  forwarded.ms = Math.round((performance.now() - began) * 10) / 10
  return forwarded
}

function refusalOf({ ok, status, headers }: Response): string | null {
  if (ok) return null
  if (status < 300 || status >= 400) return `The receiver answered with ${status}.`
  const to = headers.get('location')
  return `The receiver answered with ${status}${to ? `, to ${to}` : ''}. Redirects are not followed.`
}

async function readPrefix(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= RESPONSE_LIMIT) break
  }
  return Buffer.concat(chunks).subarray(0, RESPONSE_LIMIT).toString()
}

/** Messages with a remedy, by error code. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ConnectionRefused: 'Nothing listens there.',
  ECONNREFUSED: 'Nothing listens there.',
  ConnectionClosed: 'The receiver closed the connection without a response.',
  ECONNRESET: 'The receiver closed the connection without a response.',
  FailedToOpenSocket:
    'The receiver cannot be connected to: see that the name is right and that something listens there.',
}

function problemOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const known = PROBLEMS[String(code)]
  return known ?? `The receiver was not reached: ${message ?? error}${code ? ` (${code})` : ''}`
}
