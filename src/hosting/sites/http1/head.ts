import { setsSession, withoutSession } from '../../../http/session-cookie.ts'
import type { ByteStream } from './byte-stream.ts'

/** Largest size of a request's or a response's head, in bytes. @bound user */
const HEAD_LIMIT = 32 * 1024

/** Error: a request is refused. The message is for its sender. */
export class Refusal extends Error {
  override readonly name = 'Refusal'

  constructor(
    readonly status: 400 | 403 | 408 | 431 | 501,
    message: string,
  ) {
    super(message)
  }
}

/** Error: an app's response cannot be passed on. The message is its defect. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse'
}

/** How the end of a body is marked. */
export type Framing = 'none' | 'length' | 'chunked' | 'close'

/** A field that affects framing, the connection or trust. All others pass unchanged. */
interface SpecialField {
  /** The name in lower case. */
  readonly name: string
  /** The name by which programs behind CGI variables know the field: they cannot tell `_` from `-`. */
  readonly key: string
  readonly value: string
  /** Start and end of the line. */
  readonly start: number
  readonly end: number
}

/** The field lines of a head. */
export interface Fields {
  /** The lines as they were sent, each with its CRLF. */
  readonly lines: string
  readonly special: readonly SpecialField[]
  /** The options in Connection fields, in lower case (RFC 9110, section 7.6.1). */
  readonly options: readonly string[]
}

/** The head of a request. */
export interface RequestHead {
  readonly method: string
  /** Path and query as they were sent. */
  readonly target: string
  /** 0 for HTTP/1.0, 1 for HTTP/1.1. */
  readonly minor: number
  readonly fields: Fields
  readonly host: string | null
  readonly framing: Framing
  /** Length of the body, if the framing is `length`. */
  readonly length: number
  /** Whether another request may follow on the connection. */
  readonly keepAlive: boolean
  /** Whether the client asks for a WebSocket. */
  readonly upgrade: boolean
}

/** The head of a response. */
export interface ResponseHead {
  readonly status: number
  /** The status and the reason as they were sent. */
  readonly statusText: string
  readonly fields: Fields
  readonly framing: Framing
  /** Length of the body, if the framing is `length`. */
  readonly length: number
  /** Whether the app leaves the connection open. */
  readonly keepAlive: boolean
}

const END = Buffer.from('\r\n\r\n')

/** The characters of a token (RFC 9110, section 5.6.2), of which methods and field names consist. */
const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"

/**
 * Field lines (RFC 9112, section 5). The syntax is strict: a token, a colon directly after it, and octets of text. Programs
 * read folded lines, a bare CR or LF, and a space before the colon differently, which is how requests are smuggled.
 */
const FIELD_LINES = new RegExp(`^(?:${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*$`)
const SPECIAL_LINES =
  /^(connection|keep[-_]alive|proxy[-_]connection|te|upgrade|http2[-_]settings|content[-_]length|transfer[-_]encoding|host|cookie|set[-_]cookie|forwarded|x[-_]real[-_]ip|x[-_]forwarded[-_][^:]+):([^\r]*)\r\n/gim
const REQUEST_LINE = new RegExp(`^(${TOKEN}) ([\\x21-\\x7e\\x80-\\xff]+) HTTP/1\\.([01])$`)
const OTHER_VERSION = new RegExp(`^${TOKEN} [\\x21-\\x7e\\x80-\\xff]+ HTTP/`)
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?)$/

/** A Content-Length (RFC 9112, section 6.3). Signs and lists, even of equal values, are refused. */
const LENGTH = /^\d{1,15}$/

/**
 * Reads a head, and returns it without its empty line; null if the connection ends before.
 *
 * @param check throws if the beginning of a head cannot become a valid one
 */
export async function readHead(
  stream: ByteStream,
  check: (beginning: Buffer) => void,
): Promise<string | null> {
  let bytes: Buffer | null = null
  for (;;) {
    const chunk = await stream.read()
    if (chunk === null) return null
    bytes = bytes === null ? chunk : Buffer.concat([bytes, chunk])
    // Empty lines before a head are ignored (RFC 9112, section 2.2).
    let start = 0
    while (start < 4 && bytes[start] === 13 && bytes[start + 1] === 10) start += 2
    const end = bytes.indexOf(END, start)
    if (end !== -1 && end + END.length - start <= HEAD_LIMIT) {
      if (end + END.length < bytes.length) stream.unread(bytes.subarray(end + END.length))
      return bytes.toString('latin1', start, end + 2)
    }
    check(bytes.subarray(start))
  }
}

/** Checks the beginning of a request's head. @throws Refusal */
export function checkRequestBeginning(bytes: Buffer): void {
  if (bytes.length > HEAD_LIMIT) throw new Refusal(431, `The head of a request may have ${HEAD_LIMIT} bytes.`)
  if (hasBareLf(bytes)) throw new Refusal(400, 'A line ends without its CR.')
}

/** Checks the beginning of a response's head. @throws BadResponse */
export function checkResponseBeginning(bytes: Buffer): void {
  if (bytes.length > HEAD_LIMIT) throw new BadResponse('its header is too large')
  const version = 'HTTP/1.'
  if (!version.startsWith(bytes.toString('latin1', 0, version.length))) {
    throw new BadResponse('it does not speak HTTP/1.1')
  }
  if (hasBareLf(bytes)) throw new BadResponse('a line of its header ends without its CR')
}

/** Reports whether an LF has no CR before it: the end of such a head would never be found. */
function hasBareLf(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) {
    if (bytes[at - 1] !== 13) return true
  }
  return false
}

/** Parses field lines, each with its CRLF. Returns null if one is malformed. */
export function parseFields(lines: string): Fields | null {
  if (!FIELD_LINES.test(lines)) return null
  const special: SpecialField[] = []
  let options: string[] = NONE
  SPECIAL_LINES.lastIndex = 0
  for (let match = SPECIAL_LINES.exec(lines); match !== null; match = SPECIAL_LINES.exec(lines)) {
    const name = (match[1] as string).toLowerCase()
    const value = withoutSpace(match[2] as string)
    special.push({
      name,
      key: name.includes('_') ? name.replaceAll('_', '-') : name,
      value,
      start: match.index,
      end: SPECIAL_LINES.lastIndex,
    })
    if (name !== 'connection') continue
    options = [
      ...options,
      ...value
        .toLowerCase()
        .split(',')
        .map((option) => option.trim()),
    ]
  }
  return { lines, special, options }
}

const NONE: string[] = []

/** Removes the spaces and tabs around a value. A regular expression for the end would take quadratic time. */
function withoutSpace(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isSpace(text.charCodeAt(from))) from += 1
  while (to > from && isSpace(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

const isSpace = (octet: number): boolean => octet === 32 || octet === 9

/** Parses the head of a request. @throws Refusal */
export function parseRequest(head: string): RequestHead {
  const end = head.indexOf('\r\n')
  const line = head.slice(0, end)
  const [, method, target, version] = REQUEST_LINE.exec(line) ?? []
  if (method === undefined || target === undefined) {
    if (line.startsWith('CONNECT ')) throw new Refusal(501, 'No tunnels are made here.')
    if (OTHER_VERSION.test(line)) throw new Refusal(501, 'Only HTTP/1.0 and HTTP/1.1 are spoken here.')
    throw new Refusal(400, 'The request line is not METHOD TARGET HTTP/1.1.')
  }
  if (method === 'CONNECT') throw new Refusal(501, 'No tunnels are made here.')
  return requestHead(method, target, Number(version), head.slice(end + 2))
}

/** Methods that may be sent again if a connection ends without a response (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** Reports whether a request may be sent again if a connection ends without a response. */
export const isRepeatable = ({ method, framing }: RequestHead): boolean =>
  framing === 'none' && IDEMPOTENT.has(method)

/** Parses the field lines of a request's head (RFC 9112, section 6.3). @throws Refusal */
export function requestHead(method: string, target: string, minor: number, lines: string): RequestHead {
  const fields = parseFields(lines)
  if (fields === null) throw new Refusal(400, 'A header line is malformed.')
  const { options } = fields
  const { framing, length } = framingOf(fields, minor, (fault) => new Refusal(400, REFUSALS[fault]))
  const hosts = specialValues(fields, 'host')
  if (hosts.length > 1 || (hosts.length === 0 && minor === 1)) {
    throw new Refusal(400, 'A request needs one Host header.')
  }
  const host = hosts[0] ?? null
  const isSized = framing === 'chunked' || length > 0
  const upgrades = specialValues(fields, 'upgrade')
  return {
    method,
    target: pathOf(target, method, host),
    minor,
    fields,
    host,
    framing: isSized ? framing : 'none',
    length,
    // Keep-alive with HTTP/1.0 is not worth its rules.
    keepAlive: minor === 1 && !options.includes('close'),
    upgrade:
      upgrades.length === 1 &&
      upgrades[0]?.toLowerCase() === 'websocket' &&
      options.includes('upgrade') &&
      method === 'GET' &&
      !isSized &&
      minor === 1,
  }
}

/** Accepts a path, `*` for OPTIONS, or an absolute URL of the same host, of which it returns the path (RFC 9112, section 3.2). */
function pathOf(target: string, method: string, host: string | null): string {
  if (target.startsWith('/') || (target === '*' && method === 'OPTIONS')) return target
  const [, origin = '', authority] = /^(http:\/\/([^/?#@]+))\//i.exec(target) ?? []
  if (authority === undefined || authority.toLowerCase() !== host?.toLowerCase()) {
    throw new Refusal(400, 'The target of the request must be a path of this host.')
  }
  return target.slice(origin.length)
}

/**
 * Parses the head of a response (RFC 9112, section 6.3).
 *
 * @param method the request's, which decides whether the response may have a body
 * @throws BadResponse
 */
export function parseResponse(head: string, method: string): ResponseHead {
  const end = head.indexOf('\r\n')
  const [, version, statusText] = STATUS_LINE.exec(head.slice(0, end)) ?? []
  if (statusText === undefined) throw new BadResponse('its status line is malformed')
  const fields = parseFields(head.slice(end + 2))
  if (fields === null) throw new BadResponse('a line of its header is malformed')
  const status = Number(statusText.slice(0, 3))
  const { framing, length } = framingOf(fields, Number(version), (fault) => new BadResponse(FAULTS[fault]))
  const hasBody = method !== 'HEAD' && status >= 200 && status !== 204 && status !== 304
  const { options } = fields
  const keepAlive = !options.includes('close') && (version === '1' || options.includes('keep-alive'))
  return {
    status,
    statusText,
    fields,
    framing: hasBody ? framing : 'none',
    length,
    keepAlive: keepAlive && (!hasBody || framing !== 'close'),
  }
}

/** Why the framing of a message is refused. */
type FramingFault = 'underscore' | 'repeated' | 'length' | 'encoding'

const LENGTHS = 'The length of the body is given more than once, or is not a number.'
const REFUSALS: Readonly<Record<FramingFault, string>> = {
  underscore: 'A header that frames the body is spelt with "_".',
  repeated: LENGTHS,
  length: LENGTHS,
  encoding: 'The only transfer encoding is "chunked", and not in HTTP/1.0.',
}
const FAULTS: Readonly<Record<FramingFault, string>> = {
  underscore: 'a line of its header that frames the body is spelt with "_"',
  repeated: 'it tells its length more than once',
  length: 'its Content-Length is no number',
  encoding: 'its transfer encoding is not "chunked"',
}

function framingOf(
  { special }: Fields,
  minor: number,
  refusal: (fault: FramingFault) => Error,
): { framing: Framing; length: number } {
  let framing: Framing = 'close'
  let length = 0
  for (const { name, key, value } of special) {
    if (key !== 'content-length' && key !== 'transfer-encoding') continue
    if (key !== name) throw refusal('underscore')
    if (framing !== 'close') throw refusal('repeated')
    if (key === 'content-length') {
      if (!LENGTH.test(value)) throw refusal('length')
      framing = 'length'
      length = Number(value)
    } else {
      if (minor === 0 || value.toLowerCase() !== 'chunked') throw refusal('encoding')
      framing = 'chunked'
    }
  }
  return { framing, length }
}

function specialValues({ special }: Fields, name: string): string[] {
  let values = NONE
  for (const field of special) if (field.name === name) values = [...values, field.value]
  return values
}

/** Returns names, in lower case, and values of field lines. */
export function namesAndValues(lines: string): [name: string, value: string][] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), withoutSpace(line.slice(colon + 1))]
    })
}

/** Returns the value of a header in field lines, several joined with commas, or null. @param name in lower case */
export function headerOf(lines: string, name: string): string | null {
  const values = namesAndValues(lines).filter(([one]) => one === name)
  return values.length === 0 ? null : values.map(([, value]) => value).join(', ')
}

/** Fields that apply only to one connection (RFC 9110, section 7.6.1). */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'upgrade',
  // An h2c upgrade is not passed on, and its settings are useless without it.
  'http2-settings',
])

/** Fields that describe the client, which only a proxy may do. */
const PROXY_FIELD = /^(?:x-forwarded-.*|forwarded|x-real-ip)$/

/** Options of a Connection field that name no other field. */
const PLAIN_OPTIONS: ReadonlySet<string> = new Set(['', 'close', 'keep-alive', 'upgrade'])

/** Fields that a Connection field cannot remove. */
const ESSENTIAL: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding'])

/**
 * Returns the field lines of a request for the app: without those of the client's connection, those that only a proxy may
 * set, and the session cookies of berth's own pages.
 */
export const linesForApp = (fields: Fields): string =>
  rewritten(fields, ({ key, value, start }) => {
    if (PROXY_FIELD.test(key)) return ''
    const cookies = key === 'cookie' ? withoutSession(value) : value
    if (cookies === value) return null
    return cookies === null ? '' : `${fields.lines.slice(start, start + key.length)}: ${cookies}\r\n`
  })

/**
 * Returns the field lines of a response for the client: without those of the app's connection, and session cookies of berth's
 * own pages.
 */
export const linesForClient = (fields: Fields): string =>
  rewritten(fields, ({ key, value }) => (key === 'set-cookie' && setsSession(value) ? '' : null))

/**
 * Returns field lines without those that apply to one connection only.
 *
 * @param change returns what replaces the line of another special field; null for the line itself
 */
function rewritten(
  { lines, special, options }: Fields,
  change: (field: SpecialField) => string | null,
): string {
  let text = ''
  let from = 0
  for (const field of special) {
    const changed = CONNECTION_FIELDS.has(field.key) ? '' : change(field)
    if (changed === null) continue
    text += lines.slice(from, field.start) + changed
    from = field.end
  }
  text += lines.slice(from)
  const named = options.filter((option) => !PLAIN_OPTIONS.has(option) && !ESSENTIAL.has(option))
  if (named.length === 0) return text
  const kept = text
    .split('\r\n')
    .filter((line) => !named.includes(line.split(':', 1)[0]?.toLowerCase() ?? ''))
  return kept.join('\r\n')
}
