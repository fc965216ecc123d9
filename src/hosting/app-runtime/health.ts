import type { Dialer, LoopbackAddress } from '../../compute/sandbox.ts'
import { requestApp, responseHeadIn, saysPage, USER_AGENT } from './exchange.ts'

/** The address on which an app responds. */
export type AppAddress = LoopbackAddress

/** The result of one check. */
export type HealthResult =
  /** Nothing listens there. */
  | { readonly kind: 'refused' }
  /** Something listens, but sent no HTTP response: it closed the connection, or took too long. */
  | { readonly kind: 'silent' }
  | HealthResponse

/** What is known of an HTTP response. */
export interface HealthResponse {
  readonly kind: 'responded'
  readonly status: number
  readonly host: AppAddress['host']
  /** Whether it is a page. */
  readonly isHtml: boolean
  /** Whether it is the response of Node.js' inspector, which a program can open on any port. */
  readonly isInspector: boolean
}

/** Bytes within which a response must contain its status. @bound program */
const MAX_BYTES = 64 * 1024

/** All addresses on which an app may respond. */
export const HOSTS = ['127.0.0.1', '::1'] as const

/**
 * Requests a path of an app on a server and reads only the head: follows no redirect, reads no body, and uses no proxy.
 *
 * @param hosts tried in order until one has a listener
 * @param timeoutMs milliseconds after which an app without a response counts as silent
 */
export async function checkHealth(
  server: Dialer,
  port: number,
  hosts: readonly AppAddress['host'][],
  path: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HealthResult> {
  let result: HealthResult = { kind: 'refused' }
  for (const host of hosts) {
    result = await checkHost(server, host, port, path, timeoutMs, signal)
    if (result.kind !== 'refused') return result
  }
  return result
}

async function checkHost(
  server: Dialer,
  host: AppAddress['host'],
  port: number,
  path: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HealthResult> {
  const authority = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
  const result = await requestApp(server, {
    address: { host, port },
    request: `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: ${USER_AGENT}\r\nAccept: */*\r\nConnection: close\r\n\r\n`,
    read: (text, isOver) => responseIn(isOver ? `${text}\r\n\r\n` : text, host),
    ...{ maxBytes: MAX_BYTES, timeoutMs, signal },
  })
  return typeof result === 'string' ? { kind: result } : result
}

/** Returns what is known of the response in a text; null until its head is complete. */
function responseIn(text: string, host: AppAddress['host']): HealthResponse | null {
  const found = responseHeadIn(text)
  if (found === null) return null
  const { head, rest } = found
  const isInspector = head.status === 400 && rest.startsWith('WebSockets request was expected')
  return { kind: 'responded', status: head.status, host, isHtml: saysPage(head), isInspector }
}

/** Delays after which an address is asked again at which nothing listens. The first are short, for apps that start at once. */
const UNHEARD_MS = [5, 10, 10, 20, 20, 40, 40, 80, 100]

/** Delays after a response that is no success. An app logs each, so they grow. */
const UNHEALTHY_MS = [100, 100, 100, 200, 400, 800, 1600, 3000]

/** Decides when an address of an app that is not healthy yet is asked again. */
export class RetryDelays {
  #unheard = 0
  #unhealthy = 0

  /** Returns the milliseconds until the next request. @param isHeard whether a program listens there */
  next(isHeard: boolean): number {
    if (isHeard) return at(UNHEALTHY_MS, this.#unhealthy++)
    this.#unhealthy = 0
    return at(UNHEARD_MS, this.#unheard++)
  }
}

/** Returns an entry of a list, or its last one behind the end. */
const at = (list: readonly number[], index: number): number => list[Math.min(index, list.length - 1)] ?? 0
