import { SESSION_COOKIE_PREFIX, setsSession, withoutSession } from '../../../http/session-cookie.ts'
import { Field, type Fields } from './fields.ts'
import type { HeadMemory } from './head-memory.ts'
import type { RequestHead } from './request-head.ts'
import type { ResponseHead } from './response-head.ts'

const VERSION_LINE = Buffer.from(' HTTP/1.1\r\n')
const STATUS_VERSION = Buffer.from('HTTP/1.1')
const CLOSE = Buffer.from('Connection: close\r\n')
export const UPGRADE = Buffer.from('Connection: Upgrade\r\nUpgrade: websocket\r\n')
export const TRAILERS = Buffer.from('Connection: TE\r\nTE: trailers\r\n')
const HEAD_END = Buffer.from('\r\n')
const SESSION = Buffer.from(SESSION_COOKIE_PREFIX)

/** Fields that a Connection field cannot remove. */
export const ESSENTIAL: ReadonlySet<number> = new Set([
  Field.host,
  Field.contentLength,
  Field.transferEncoding,
])

/**
 * Writes a request's head for the app to `memory.scratch`. Leaves out the fields of the client's connection (RFC
 * 9110, section 7.6.1), fields that only a proxy may set, and the session cookies of berth's own pages.
 *
 * @param bytes from which `head` was parsed
 * @param forwarded see `ClientDescription`
 * @returns the length in bytes
 */
export function putRequestHead(
  { scratch }: HeadMemory,
  bytes: Buffer,
  head: RequestHead,
  forwarded: Uint8Array,
): number {
  const { fields } = head
  fields.ensure(bytes, head.fieldsStart, head.end)
  const methodEnd = head.start + head.method.length + 1
  let to = 0
  let from = head.start
  // Most request lines pass unchanged. Those are copied with the fields after them: each copy takes time.
  if (head.targetStart !== methodEnd || head.minor !== 1) {
    to += bytes.copy(scratch, 0, head.start, methodEnd)
    to += bytes.copy(scratch, to, head.targetStart, head.targetEnd)
    to += put(scratch, VERSION_LINE, to)
    from = head.fieldsStart
  }
  to = putFields(scratch, bytes, fields, from, to, head.connection.named, dropsOfRequest)
  if (head.upgrade) to += put(scratch, UPGRADE, to)
  else if (head.trailers) to += put(scratch, TRAILERS, to)
  return to + put(scratch, forwarded, to)
}

/** Changes to make to a response's head. */
interface ResponseChanges {
  /** Whether the connection ends after the response. */
  close: boolean
  /** Whether the body is sent without its chunks. */
  unchunk?: boolean
  /** Whether the connection becomes a WebSocket. */
  upgrade?: boolean
}

/**
 * Writes a response's head for the client to `memory.scratch`.
 *
 * @param bytes from which `head` was parsed just now
 * @param start start of the head
 * @returns the length in bytes
 */
export function putResponseHead(
  { scratch }: HeadMemory,
  bytes: Buffer,
  start: number,
  head: ResponseHead,
  { close, unchunk, upgrade }: ResponseChanges,
): number {
  let to = put(scratch, STATUS_VERSION, 0)
  to += bytes.copy(scratch, to, start + STATUS_VERSION.length, head.fieldsStart)
  const drops = unchunk ? dropsUnchunked : dropsOfResponse
  to = putFields(scratch, bytes, head.fields, head.fieldsStart, to, head.connection.named, drops)
  if (upgrade) to += put(scratch, UPGRADE, to)
  else if (close) to += put(scratch, CLOSE, to)
  return to + put(scratch, HEAD_END, to)
}

const dropsOfResponse = (kind: number): boolean =>
  kind === Field.connection || kind === Field.hop || kind === Field.upgrade

const dropsUnchunked = (kind: number): boolean => dropsOfResponse(kind) || kind === Field.transferEncoding

const dropsOfRequest = (kind: number): boolean =>
  dropsOfResponse(kind) || kind === Field.te || kind === Field.forwarded

/**
 * Copies the lines that are kept, adjacent ones in one call.
 *
 * @param start the start of the field lines, or of the line before them, which is copied too
 */
function putFields(
  scratch: Buffer,
  bytes: Buffer,
  fields: Fields,
  start: number,
  at: number,
  named: readonly string[],
  drops: (kind: number) => boolean,
): number {
  let to = at
  let from = start
  for (let index = 0; index < fields.count; index += 1) {
    const kind = fields.kind[index] as number
    if (kind === Field.other && named.length === 0) continue
    const isNamed = named.length > 0 && !ESSENTIAL.has(kind) && named.includes(fields.name(bytes, index))
    const isOurs = (kind === Field.cookie || kind === Field.setCookie) && hasSession(bytes, fields, index)
    if (!isNamed && !isOurs && !drops(kind)) continue
    const line = fields.line[index] as number
    if (line > from) to += bytes.copy(scratch, to, from, line)
    from = fields.line[index + 1] as number
    if (isOurs && !isNamed) to += putWithoutSession(scratch, bytes, fields, index, to)
  }
  const end = fields.line[fields.count] as number
  return end > from ? to + bytes.copy(scratch, to, from, end) : to
}

/** Reports whether a field may carry a session of berth's own pages. */
const hasSession = (bytes: Buffer, fields: Fields, index: number): boolean =>
  bytes.subarray(fields.valueStart[index], fields.valueEnd[index]).includes(SESSION)

/**
 * Writes a Cookie or Set-Cookie field without the sessions of berth's own pages.
 *
 * @returns the length in bytes
 */
function putWithoutSession(
  scratch: Buffer,
  bytes: Buffer,
  fields: Fields,
  index: number,
  at: number,
): number {
  const value = fields.value(bytes, index)
  const isOfRequest = fields.kind[index] === Field.cookie
  const rest = isOfRequest ? withoutSession(value) : setsSession(value) ? null : value
  if (rest === null) return 0
  const length = bytes.copy(scratch, at, fields.line[index], fields.valueStart[index])
  return length + scratch.write(`${rest}\r\n`, at + length, 'latin1')
}

function put(scratch: Buffer, bytes: Uint8Array, at: number): number {
  scratch.set(bytes, at)
  return bytes.length
}
