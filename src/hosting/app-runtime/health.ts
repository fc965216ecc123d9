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
  | { readonly kind: 'responded'; readonly status: number; readonly host: AppAddress['host'] }

/** Bytes within which a response must contain its status. */
const MAX_BYTES = 64 * 1024

/** All addresses on which an app may respond. */
export const HOSTS = ['127.0.0.1', '::1'] as const

/**
 * Requests a path of an app on a server and reads only the status: follows no redirect, reads no body, and uses no proxy.
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
  // A timeout before the connection opened leaves open whether anything listens.
  const silent = (): void => result.resolve({ kind: opened ? 'silent' : 'refused' })
  const timer = setTimeout(silent, timeoutMs)
  using _abort = onAbort(signal, silent)
  const authority = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
  const request = `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: berth-health\r\nAccept: */*\r\nConnection: close\r\n\r\n`
  let text = ''
  const connecting = server.dial(port, host, {
    opened(connection: DialedConnection) {
      opened = true
      connection.write(Buffer.from(request))
    },
    data(chunk) {
      text += chunk.toString('latin1')
      const status = statusOf(text)
      if (status !== null) result.resolve({ kind: 'responded', status, host })
      else if (text.length > MAX_BYTES) silent()
    },
    drain() {},
    closed: silent,
  })
  connecting.catch(() => result.resolve({ kind: 'refused' }))
  try {
    return await result.promise
  } finally {
    clearTimeout(timer)
    connecting.then(
      (connection) => connection.terminate(),
      () => {},
    )
  }
}

/** Returns the status of the first final response (RFC 9110, section 15.2); null until it has arrived. */
function statusOf(text: string): number | null {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |\r\n)/.exec(`${head}\r\n`)?.[1]
  if (status === undefined || (!head.includes('\r\n') && rest.length === 0)) return null
  if (status.startsWith('1') && status !== '101')
    return rest.length === 0 ? null : statusOf(rest.join('\r\n\r\n'))
  return Number(status)
}
