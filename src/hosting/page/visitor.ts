import {
  type ResponseHead,
  requestApp,
  responseHeadIn,
  saysPage,
  USER_AGENT,
} from '../app-runtime/exchange.ts'
import type { FileRequest, Upstream } from '../sites/upstream.ts'

/** What is asked for. */
export interface Visit {
  /** Path and query. */
  readonly target: string
  /** Value of the Accept header. */
  readonly accept: string
  /** Bytes of the body that are read. */
  readonly wanted: number
}

/** Requests a path of an app as a visitor does. Returns null if no response comes in time. */
export type Visitor = (visit: Visit, signal: AbortSignal) => Promise<PageResponse | null>

/** Bytes that the head of a response may have besides its body, and its body besides its content. */
const OVERHEAD = 128 * 1024

/** A time that never comes first: the signal ends a request. */
const NO_TIMEOUT_MS = 60_000

/**
 * Returns a visitor of what responds to an app's requests: with the headers that berth passes on for a browser, but past its
 * site, so that the visit counts as no use.
 *
 * @param host the Host of the app's URL
 * @returns null while nothing responds
 */
export function visitorOf(upstream: Upstream, host: string): Visitor | null {
  if (upstream.kind === 'files') {
    const { serve } = upstream
    return async ({ target, accept, wanted }) => {
      const header = (name: string): string | null => (name === 'accept' ? accept : null)
      const response = await serve({ method: 'GET', target, header } satisfies FileRequest)
      const { status, headers, body } = response
      return { status, header: (name) => headers[name] ?? null, body: await beginningOf(body, wanted) }
    }
  }
  if (upstream.kind !== 'app') return null
  const address = { host: upstream.host ?? '127.0.0.1', port: upstream.port } as const
  return async ({ target, accept, wanted }, signal) => {
    const fields = {
      Host: host,
      'User-Agent': USER_AGENT,
      Accept: accept,
      'Accept-Encoding': 'identity',
      'X-Forwarded-For': '127.0.0.1',
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Host': host,
      Connection: 'close',
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    const response = await requestApp(upstream.server, {
      address,
      request: `GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`,
      read: (text, isOver) => pageResponseIn(text, isOver, wanted),
      maxBytes: wanted + OVERHEAD,
      timeoutMs: NO_TIMEOUT_MS,
      signal,
    })
    return typeof response === 'string' ? null : response
  }
}

/** Returns the beginning of a body as text. */
async function beginningOf(
  body: Uint8Array | ReadableStream<Uint8Array> | null,
  wanted: number,
): Promise<string> {
  if (body === null) return ''
  if (body instanceof Uint8Array) return Buffer.from(body.subarray(0, wanted)).toString()
  const parts: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the stream.
  for await (const part of body) {
    parts.push(part)
    length += part.length
    if (length >= wanted) break
  }
  return Buffer.concat(parts).subarray(0, wanted).toString()
}

/** The response of an app to a request for a page, as far as it was read. */
export interface PageResponse extends ResponseHead {
  /** The beginning of its body, as UTF-8. */
  readonly body: string
}

/** Reports whether a response has a page as its body. */
export const isPage = (response: PageResponse): boolean => response.body.trim() !== '' && saysPage(response)

/**
 * Returns the first final response of a text in Latin-1; null until its head is there, and as much of its body as is wanted.
 *
 * @param isOver whether no more comes, so that what is there has to do
 * @param wanted bytes of the body
 */
function pageResponseIn(text: string, isOver: boolean, wanted: number): PageResponse | null {
  const found = responseHeadIn(text)
  if (found === null) return null
  const { head, rest } = found
  const isChunked = /\bchunked\s*$/i.test(head.header('transfer-encoding') ?? '')
  const length = Number(head.header('content-length') ?? Number.POSITIVE_INFINITY)
  const isAll = isChunked ? rest.endsWith('0\r\n\r\n') : rest.length >= Math.min(wanted, length)
  const isEmpty = head.status === 204 || head.status === 304
  if (!isOver && !isAll && !isEmpty && rest.length < wanted) return null
  const body = isChunked ? unchunked(rest) : rest
  return { ...head, body: Buffer.from(body.slice(0, wanted), 'latin1').toString() }
}

/** Returns the content of chunks (RFC 9112, section 7.1), as far as they are there. */
function unchunked(text: string): string {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const line = text.indexOf('\r\n', at)
    const size = line === -1 ? 0 : Number.parseInt(text.slice(at, line), 16)
    if (!(size > 0)) break
    parts.push(text.slice(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
  return parts.join('')
}
