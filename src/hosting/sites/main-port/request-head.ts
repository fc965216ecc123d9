import { withoutSession } from '../../../http/session-cookie.ts'
import { Field, type FieldKind, fieldKind } from '../http1/fields.ts'
import { ConnectionOptions, parseLength, type Refusal } from '../http1/head.ts'
import { FIELDS, LENGTHS, REQUEST_LINE, UNDERSCORE } from '../http1/request-head.ts'
import { ESSENTIAL, TRAILERS, UPGRADE } from '../http1/rewrite.ts'
import type { SiteState } from '../site-state.ts'

/** A character that a request's target must not contain. */
const NOT_OF_TARGET = /[^\u0021-\u007e\u0080-\uffff]/

/** A character that a field's value must not contain (RFC 9110, section 5.5), or that is no octet. */
const NOT_OF_VALUE = /[^\t\u0020-\u007e\u0080-\u00ff]/

/** Fields that apply only to the client's connection, or that only a proxy may set. */
const DROPPED: ReadonlySet<FieldKind> = new Set([
  Field.connection,
  Field.forwarded,
  Field.hop,
  Field.te,
  Field.transferEncoding,
  Field.upgrade,
])

/** A request's head in HTTP/1.1 as it is sent to the app. */
export interface AppRequestHead {
  readonly bytes: Buffer
  /** Framing of the body that follows. */
  readonly framing: 'none' | 'length' | 'chunked'
}

/**
 * Builds the head that an app gets for a request of the main port, by the rules of a site's own port. Bun has already
 * limited its size to 16 KiB and fewer than 200 fields.
 *
 * @param address of the client
 * @param upgrade whether the client asks for a WebSocket
 * @returns the head, or a refusal if the request breaks one of these rules
 */
export function appRequestHead(
  request: Request,
  address: string,
  state: SiteState,
  upgrade: boolean,
): AppRequestHead | Refusal {
  const { method, headers, body } = request
  const target = targetOf(request)
  if (NOT_OF_TARGET.test(target)) return REQUEST_LINE
  const host = headers.get('host')
  const length = headers.get('content-length')
  const size = length === null ? null : parseLength(length)
  if (size !== null && size < 0) return LENGTHS
  const options = new ConnectionOptions()
  options.add(headers.get('connection') ?? '')
  let lines = ''
  for (const [name, value] of headers) {
    if (NOT_OF_VALUE.test(value)) return FIELDS
    const kind = fieldKind(name)
    if (kind === Field.contentLength && name !== 'content-length') return UNDERSCORE
    if (kind === Field.transferEncoding && name !== 'transfer-encoding') return UNDERSCORE
    if (DROPPED.has(kind) || name === 'expect') continue
    // Content-Length without a body, such as of a GET whose body Bun has dropped.
    if (kind === Field.contentLength && body === null && size !== 0) continue
    if (!ESSENTIAL.has(kind) && options.named.includes(name)) continue
    const kept = kind === Field.cookie ? withoutSession(value) : value
    if (kept !== null) lines += `${name}: ${kept}\r\n`
  }
  const framing = body === null || size === 0 ? 'none' : size === null ? 'chunked' : 'length'
  if (framing === 'chunked') lines += 'Transfer-Encoding: chunked\r\n'
  if (upgrade) lines += UPGRADE
  else if (/(?:^|,)\s*trailers\s*(?:,|$)/i.test(headers.get('te') ?? '')) lines += TRAILERS
  const bytes = Buffer.concat([
    // Bun decodes non-ASCII characters of a URL as UTF-8, and of fields as Latin-1.
    Buffer.from(`${method} ${target} HTTP/1.1\r\n`),
    Buffer.from(lines, 'latin1'),
    state.describeClient(address, host).forwarded,
  ])
  return { bytes, framing }
}

/** Returns a request's path and query as they were sent. */
export const targetOf = ({ url }: Request): string => url.slice(url.indexOf('/', 'http://'.length))
