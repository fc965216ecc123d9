/** Most bytes of the head of a request, and of a response. @bound program */
export const PROXY_HEAD_LIMIT = 64 * 1024

/** Longest host name (RFC 1035, section 2.3.4). */
const HOST_LENGTH = 253

/** A request to an HTTP proxy: a tunnel, or a request in absolute form (RFC 9112, section 3.2.2). */
interface ProxyRequest {
  /** In lower case, without brackets. */
  readonly host: string
  readonly port: number
  /** What the server at the other end gets first: nothing for a tunnel, else the request in origin form. */
  readonly head: string | null
}

/** Headers that are for the proxy alone, or about the connection to it, or that the proxy writes itself. */
const OWN_HEADERS = /^(?:proxy-[a-z-]+|connection|keep-alive|te|upgrade|host)$/

/** A header on a line of its own, without what could be taken for the end of a line (RFC 9112, sections 2.2 and 5). */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)$/

const NO_REQUEST = 'Only CONNECT and http:// URLs are proxied here.'
const MALFORMED = 'A header of the request is malformed.'

/**
 * Returns where the head of a request ends in bytes; -1 if its end has not come yet.
 *
 * @param searched how many of the bytes were searched in vain before
 */
export const headEnd = (bytes: Buffer, searched: number): number => {
  const at = bytes.indexOf('\r\n\r\n', Math.max(0, searched - 3))
  return at === -1 ? -1 : at + 4
}

/** Reads the head of a request to the proxy. Returns a sentence for people if it is none. */
export function readProxyRequest(text: string): ProxyRequest | string {
  const [line = '', ...lines] = text.split('\r\n')
  const [, method = '', target = '', version = ''] =
    /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) (HTTP\/1\.[01])$/.exec(line) ?? []
  if (method === 'CONNECT') {
    const url = /^[^/?#@\\]+:\d{1,5}$/.test(target) ? URL.parse(`http://${target}`) : null
    if (url === null || url.hostname.length > HOST_LENGTH) return NO_REQUEST
    return { host: hostOf(url), port: Number(/\d+$/.exec(target)?.[0]), head: null }
  }
  const [, authority, path = ''] = /^http:\/\/([^/?#@\\]+)([/?][^#]*)?(?:#.*)?$/i.exec(target) ?? []
  const url = authority === undefined ? null : URL.parse(`http://${authority}`)
  if (url === null || url.hostname.length > HOST_LENGTH) return NO_REQUEST
  const headers = lines.map((header) => HEADER.exec(header))
  if (headers.includes(null)) return MALFORMED
  const fields = headers.flatMap((header) => (header === null ? [] : [header]))
  // Headers that Connection names are about this connection, too (RFC 9110, section 7.6.1).
  const named = fields
    .filter(([, name = '']) => name.toLowerCase() === 'connection')
    .flatMap(([, , value = '']) =>
      value
        .toLowerCase()
        .split(',')
        .map((one) => one.trim()),
    )
  const kept = fields.filter(([, name = '']) => {
    const plain = name.toLowerCase()
    return !OWN_HEADERS.test(plain) && (!named.includes(plain) || FRAMING.has(plain))
  })
  const head = [
    // The path is as the program wrote it: a signature may be about it (RFC 9110, section 7.7).
    `${method} ${path.startsWith('/') ? path : `/${path}`} ${version}`,
    `Host: ${url.host}`,
    ...kept.map(([header]) => header),
    'Connection: close',
    ...['', ''],
  ].join('\r\n')
  return { host: hostOf(url), port: Number(url.port || 80), head }
}

/** Headers that say where the request ends, whatever else is said about them. */
const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

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
