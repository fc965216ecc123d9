/** Most bytes of a request's head. @bound program */
export const PROXY_HEAD_LIMIT = 64 * 1024

/** A request to an HTTP proxy: a tunnel, or a request in absolute form (RFC 9112, section 3.2.2). */
interface ProxyRequest {
  /** In lower case, without brackets. */
  readonly host: string
  readonly port: number
  /** What the server at the other end gets first: nothing for a tunnel, else the request in origin form. */
  readonly head: string | null
}

/** Headers that are for the proxy alone, or about the connection to it. */
const OWN_HEADERS = /^(?:proxy-[a-z-]+|connection|keep-alive)$/

/**
 * Returns where the head of a request ends in bytes; -1 if its end has not come yet.
 *
 * @param searched how many of the bytes were searched in vain before
 */
export const headEnd = (bytes: Buffer, searched: number): number => {
  const at = bytes.indexOf('\r\n\r\n', Math.max(0, searched - 3))
  return at === -1 ? -1 : at + 4
}

/** Reads the head of a request to the proxy. Returns null if it is none. */
export function readProxyRequest(text: string): ProxyRequest | null {
  const [line = '', ...headers] = text.split('\r\n')
  const [, method = '', target = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]$/.exec(line) ?? []
  if (method === 'CONNECT') {
    const url = /^[^/?#@\\]+:\d{1,5}$/.test(target) ? URL.parse(`http://${target}`) : null
    if (url === null) return null
    return { host: hostOf(url), port: Number(/\d+$/.exec(target)?.[0]), head: null }
  }
  const url = /^http:\/\/[^@\\]*$/i.test(target) ? URL.parse(target) : null
  if (url === null || url.username !== '') return null
  const kept = headers.filter((header) => {
    const [name = ''] = header.split(':', 1)
    return header !== '' && !OWN_HEADERS.test(name.toLowerCase())
  })
  // The connection ends with the response, so that the next request is judged anew.
  const path = `${url.pathname}${url.search}`
  const head = [`${method} ${path} HTTP/1.1`, ...kept, 'Connection: close', '', ''].join('\r\n')
  return { host: hostOf(url), port: Number(url.port || 80), head }
}

const hostOf = (url: URL): string =>
  url.hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')

/**
 * Returns a response of the proxy's own. Of a tunnel that was not opened, programs show at most the status line, so that has
 * the sentences too.
 *
 * @param sentences what happened, for people
 */
export function proxyResponse(status: number, sentences: string): string {
  const body = `${sentences}\n`
  return [
    `HTTP/1.1 ${status} ${sentences}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
