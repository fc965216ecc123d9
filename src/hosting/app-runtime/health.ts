import type { DialedConnection, LoopbackAddress } from '../../compute/dialed-connection.ts'
import type { Dialer } from '../../compute/sandbox.ts'
import { onAbort } from '../../runtime/abort.ts'

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

/** Bytes within which a response must contain its status. */
const MAX_BYTES = 64 * 1024

/** Milliseconds after which a connection is reset that the app does not close. */
const CLOSE_MS = 1000

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
  if (signal.aborted) return { kind: 'refused' }
  const result = Promise.withResolvers<HealthResult>()
  let opened = false
  let closed = false
  let text = ''
  // A timeout before the connection opened leaves open whether anything listens.
  const over = (): void =>
    result.resolve(responseIn(`${text}\r\n\r\n`, host) ?? { kind: opened ? 'silent' : 'refused' })
  const timer = setTimeout(over, timeoutMs)
  using _abort = onAbort(signal, over)
  const authority = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
  const request = `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: berth-health\r\nAccept: */*\r\nConnection: close\r\n\r\n`
  const connecting = server.dial(port, host, {
    opened(connection: DialedConnection) {
      opened = true
      connection.write(Buffer.from(request))
    },
    data(chunk) {
      if (text.length > MAX_BYTES) return
      text += chunk.toString('latin1')
      const response = responseIn(text, host)
      if (response !== null) result.resolve(response)
      else if (text.length > MAX_BYTES) over()
    },
    drain() {},
    closed() {
      closed = true
      over()
    },
  })
  connecting.catch(() => result.resolve({ kind: 'refused' }))
  try {
    return await result.promise
  } finally {
    clearTimeout(timer)
    // A reset ends programs that handle no errors of their connections, as many do that do not speak HTTP.
    connecting.then(
      (connection) => {
        if (!closed) connection.end()
        setTimeout(() => closed || connection.terminate(), CLOSE_MS).unref()
      },
      () => {},
    )
  }
}

/** Returns the first final response (RFC 9110, section 15.2) of a text; null until its head is complete. */
function responseIn(text: string, host: AppAddress['host']): HealthResponse | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const head = text.slice(0, end)
  const rest = text.slice(end + 4)
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |\r\n|$)/.exec(head)?.[1]
  if (status === undefined) return null
  if (status.startsWith('1') && status !== '101') return responseIn(rest, host)
  const isHtml = /^content-type:[ \t]*(?:text\/html|application\/xhtml\+xml)\b/im.test(head)
  const isInspector = status === '400' && rest.startsWith('WebSockets request was expected')
  return { kind: 'responded', status: Number(status), host, isHtml, isInspector }
}
