/** The response of an app to a request for a page, as far as it was read. */
export interface PageResponse {
  readonly status: number
  /** Returns the value of a header field, or null. @param name in lower case */
  header(name: string): string | null
  /** The beginning of its body, as UTF-8. */
  readonly body: string
}

/** Reports whether a response has a page as its body. */
export const isPage = (response: PageResponse): boolean =>
  response.body.trim() !== '' &&
  /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(response.header('content-type') ?? '')

/**
 * Returns the first final response (RFC 9110, section 15.2) of a text in Latin-1; null until its head is there, and as much
 * of its body as is wanted.
 *
 * @param isOver whether no more comes, so that what is there has to do
 * @param wanted bytes of the body
 */
export function pageResponseIn(text: string, isOver: boolean, wanted: number): PageResponse | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const head = text.slice(0, end)
  const rest = text.slice(end + 4)
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |\r\n|$)/.exec(head)?.[1]
  if (status === undefined) return null
  if (status.startsWith('1')) return pageResponseIn(rest, isOver, wanted)
  const header = (name: string): string | null =>
    new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r?$`, 'im').exec(head)?.[1] ?? null
  const isChunked = /\bchunked\s*$/i.test(header('transfer-encoding') ?? '')
  const isAll = isChunked
    ? rest.endsWith('0\r\n\r\n')
    : rest.length >= Math.min(wanted, Number(header('content-length') ?? Number.POSITIVE_INFINITY))
  const isEmpty = status === '204' || status === '304'
  if (!isOver && !isAll && !isEmpty && rest.length < wanted) return null
  const body = isChunked ? unchunked(rest) : rest
  return {
    status: Number(status),
    header,
    body: Buffer.from(body.slice(0, wanted), 'latin1').toString(),
  }
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
