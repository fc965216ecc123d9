import { type ResponseHead, responseHeadIn, saysPage } from '../app-runtime/exchange.ts'

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
export function pageResponseIn(text: string, isOver: boolean, wanted: number): PageResponse | null {
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
