import type { LoopbackAddress } from '../../compute/driver.ts'

/** Where an app answers. */
export type AppAddress = LoopbackAddress

/** What came of one question. */
export type HealthResult =
  /** Nothing listens there. */
  | { readonly kind: 'refused' }
  /** Something listens, and gave no answer of HTTP: it closed the connection, or took too long. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'responded'; readonly status: number; readonly host: AppAddress['host'] }

/** Bytes in which an answer must have said its status. */
const MOST_BYTES = 64 * 1024

/** All addresses at which an app may answer. */
export const HOSTS = ['127.0.0.1', '::1'] as const

/**
 * Asks an app for a path and listens for the status alone: redirects are not followed, nothing of the body is read,
 * and no proxy of the environment is in between.
 *
 * @param hosts at which it is asked, one after the other as long as nothing listens
 * @param timeoutMs after which an app that says nothing counts as silent
 */
export async function checkHealth(
  port: number,
  hosts: readonly AppAddress['host'][],
  path: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HealthResult> {
  let result: HealthResult = { kind: 'refused' }
  for (const host of hosts) {
    result = await checkHost(host, port, path, timeoutMs, signal)
    if (result.kind !== 'refused') return result
  }
  return result
}

async function checkHost(
  host: AppAddress['host'],
  port: number,
  path: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HealthResult> {
  if (signal.aborted) return { kind: 'refused' }
  const result = Promise.withResolvers<HealthResult>()
  let opened = false
  // Where time was up before the connection stood, nothing is known to listen.
  const silent = (): void => result.resolve({ kind: opened ? 'silent' : 'refused' })
  const timer = setTimeout(silent, timeoutMs)
  signal.addEventListener('abort', silent)
  const authority = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
  const request = `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: berth-health\r\nAccept: */*\r\nConnection: close\r\n\r\n`
  let text = ''
  const connecting = Bun.connect({
    hostname: host,
    port,
    socket: {
      open(socket) {
        opened = true
        socket.write(request)
      },
      data(_, chunk) {
        text += chunk.toString('latin1')
        const status = statusOf(text)
        if (status !== null) result.resolve({ kind: 'responded', status, host })
        else if (text.length > MOST_BYTES) silent()
      },
      close: silent,
      error: silent,
    },
  })
  connecting.catch(() => result.resolve({ kind: 'refused' }))
  try {
    return await result.promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', silent)
    connecting.then(
      (socket) => socket.terminate(),
      () => {},
    )
  }
}

/** The status of an answer's first line that is not provisional (RFC 9110, 15.2); null while there is none. */
function statusOf(text: string): number | null {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |\r\n)/.exec(`${head}\r\n`)?.[1]
  if (status === undefined || (!head.includes('\r\n') && rest.length === 0)) return null
  if (status.startsWith('1') && status !== '101')
    return rest.length === 0 ? null : statusOf(rest.join('\r\n\r\n'))
  return Number(status)
}
