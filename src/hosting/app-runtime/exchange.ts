import type { DialedConnection, Dialer, LoopbackAddress } from '../../compute/sandbox.ts'
import { onAbort } from '../../runtime/wait.ts'

/** A request to an app, and how its response is read. */
export interface AppRequest<Result> {
  readonly address: LoopbackAddress
  /** The bytes of the request. */
  readonly request: string
  /**
   * Returns the result that a response has once enough of it is there, else null.
   *
   * @param text what has come, as Latin-1
   * @param isOver whether no more comes
   */
  readonly read: (text: string, isOver: boolean) => Result | null
  /** Most bytes that are read. */
  readonly maxBytes: number
  /** Milliseconds after which an app without a response counts as silent. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Milliseconds after which a connection is reset that the app does not close. */
const CLOSE_MS = 1000

/**
 * Sends one request to a port of a server, on a connection of its own.
 *
 * @returns the result; `refused` if nothing listens there, `silent` if what came has none
 */
export async function requestApp<Result>(
  server: Dialer,
  { address: { port, host }, request, read, maxBytes, timeoutMs, signal }: AppRequest<Result>,
): Promise<Result | 'refused' | 'silent'> {
  if (signal.aborted) return 'refused'
  const result = Promise.withResolvers<Result | 'refused' | 'silent'>()
  let opened = false
  let closed = false
  let text = ''
  // A timeout before the connection opened leaves open whether anything listens.
  const over = (): void => result.resolve(read(text, true) ?? (opened ? 'silent' : 'refused'))
  const timer = setTimeout(over, timeoutMs)
  using _abort = onAbort(signal, over)
  const connecting = server.dial(port, host, {
    opened(connection: DialedConnection) {
      opened = true
      connection.write(Buffer.from(request))
    },
    data(chunk) {
      if (text.length > maxBytes) return
      text += chunk.toString('latin1')
      const response = read(text, false)
      if (response !== null) result.resolve(response)
      else if (text.length > maxBytes) over()
    },
    drain() {},
    closed() {
      closed = true
      over()
    },
  })
  connecting.catch(() => result.resolve('refused'))
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

/** The name by which an app recognises berth's own requests. */
export const USER_AGENT = 'berth-health'

/** The head of a response. */
export interface ResponseHead {
  readonly status: number
  /** Returns the value of a header field, or null. @param name in lower case */
  header(name: string): string | null
}

/** Returns the head of the first final response (RFC 9110, section 15.2) of a text, and what follows it; null until it is there. */
export function responseHeadIn(text: string): { head: ResponseHead; rest: string } | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const lines = text.slice(0, end)
  const rest = text.slice(end + 4)
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |\r\n|$)/.exec(lines)?.[1]
  if (status === undefined) return null
  // 101 is final: what follows is no longer HTTP.
  if (status.startsWith('1') && status !== '101') return responseHeadIn(rest)
  const header = (name: string): string | null =>
    new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r?$`, 'im').exec(lines)?.[1] ?? null
  return { head: { status: Number(status), header }, rest }
}

/** Reports whether a response says that it is a page. */
export const saysPage = (head: ResponseHead): boolean =>
  /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(head.header('content-type') ?? '')
