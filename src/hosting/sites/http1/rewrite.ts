import { SESSION_COOKIE_PREFIX, setsSession, withoutSession } from '../../../http/session-cookie.ts'
import { Field } from './fields.ts'
import { fields, HEAD_LIMIT } from './head.ts'
import type { RequestHead } from './request-head.ts'
import type { ResponseHead } from './response-head.ts'

/** Where messages are put together; what is written from it is copied where it cannot go out at once. */
export const scratch = Buffer.allocUnsafeSlow(4 * HEAD_LIMIT)

const VERSION_LINE = Buffer.from(' HTTP/1.1\r\n')
const STATUS_VERSION = Buffer.from('HTTP/1.1')
const CLOSE = Buffer.from('Connection: close\r\n')
const UPGRADE = Buffer.from('Connection: Upgrade\r\nUpgrade: websocket\r\n')
const TRAILERS = Buffer.from('Connection: TE\r\nTE: trailers\r\n')
const HEAD_END = Buffer.from('\r\n')
const SESSION = Buffer.from(SESSION_COOKIE_PREFIX)

/** Fields that stay, whatever a Connection field says of them. */
const ESSENTIAL: ReadonlySet<number> = new Set([Field.host, Field.contentLength, Field.transferEncoding])

/**
 * Puts a request's head into `scratch` as the app gets it: as it was sent, but for what means the client's
 * connection alone (RFC 9110, 7.6.1), what only a proxy may tell, which `told` tells instead, and the sessions of
 * berth's own pages.
 *
 * @param bytes that `head` was parsed from
 * @param told lines about the client, each with its CRLF
 * @returns how many bytes it is
 */
export function putRequestHead(bytes: Buffer, head: RequestHead, told: Uint8Array): number {
  fields.ensure(bytes, head.fieldsStart, head.end)
  let to = bytes.copy(scratch, 0, head.start, head.start + head.method.length + 1)
  to += bytes.copy(scratch, to, head.targetStart, head.targetEnd)
  to += put(VERSION_LINE, to)
  to = putFields(bytes, to, head.connection.named, dropsOfRequest)
  if (head.upgrade) to += put(UPGRADE, to)
  else if (head.trailers) to += put(TRAILERS, to)
  to += put(told, to)
  return to + put(HEAD_END, to)
}

/** How an answer's head is to be changed. */
export interface ResponseChanges {
  /** The connection ends behind the answer. */
  close: boolean
  /** The body goes out without its chunks. */
  unchunk?: boolean
  /** The connection becomes a WebSocket. */
  upgrade?: boolean
}

/**
 * Puts an answer's head into `scratch` as the client gets it. @returns how many bytes it is
 *
 * @param bytes with `head` and `fields` as they were parsed from them
 * @param start where the head begins
 */
export function putResponseHead(
  bytes: Buffer,
  start: number,
  head: ResponseHead,
  { close, unchunk, upgrade }: ResponseChanges,
): number {
  let to = put(STATUS_VERSION, 0)
  to += bytes.copy(scratch, to, start + STATUS_VERSION.length, head.fieldsStart)
  to = putFields(bytes, to, head.connection.named, unchunk ? dropsUnchunked : dropsOfResponse)
  if (upgrade) to += put(UPGRADE, to)
  else if (close) to += put(CLOSE, to)
  return to + put(HEAD_END, to)
}

const dropsOfResponse = (kind: number): boolean =>
  kind === Field.connection || kind === Field.hop || kind === Field.upgrade

const dropsUnchunked = (kind: number): boolean => dropsOfResponse(kind) || kind === Field.transferEncoding

const dropsOfRequest = (kind: number): boolean =>
  dropsOfResponse(kind) || kind === Field.te || kind === Field.forwarded

/** Copies the lines that stay, neighbours in one go. */
function putFields(
  bytes: Buffer,
  at: number,
  named: readonly string[],
  drops: (kind: number) => boolean,
): number {
  let to = at
  let from = fields.line[0] as number
  for (let index = 0; index < fields.count; index += 1) {
    const kind = fields.kind[index] as number
    if (kind === Field.other && named.length === 0) continue
    const isNamed = named.length > 0 && !ESSENTIAL.has(kind) && named.includes(fields.name(bytes, index))
    const isOurs = (kind === Field.cookie || kind === Field.setCookie) && hasSession(bytes, index)
    if (!isNamed && !isOurs && !drops(kind)) continue
    const line = fields.line[index] as number
    if (line > from) to += bytes.copy(scratch, to, from, line)
    from = fields.line[index + 1] as number
    if (isOurs && !isNamed) to += putWithoutSession(bytes, index, to)
  }
  const end = fields.line[fields.count] as number
  return end > from ? to + bytes.copy(scratch, to, from, end) : to
}

/** Whether a field may be about a session of berth's own pages. */
const hasSession = (bytes: Buffer, index: number): boolean =>
  bytes.subarray(fields.valueStart[index], fields.valueEnd[index]).includes(SESSION)

/** Puts what stays of a Cookie or Set-Cookie field. @returns how many bytes it is */
function putWithoutSession(bytes: Buffer, index: number, at: number): number {
  const value = fields.value(bytes, index)
  const isOfRequest = fields.kind[index] === Field.cookie
  const rest = isOfRequest ? withoutSession(value) : setsSession(value) ? null : value
  if (rest === null) return 0
  const length = bytes.copy(scratch, at, fields.line[index], fields.valueStart[index])
  return length + scratch.write(`${rest}\r\n`, at + length, 'latin1')
}

function put(bytes: Uint8Array, at: number): number {
  scratch.set(bytes, at)
  return bytes.length
}
