import { Field, type Fields, TOKEN } from './fields.ts'
import { ConnectionOptions, type Refusal } from './head.ts'

const refuse = (message: string): Refusal => ({ status: 400, message })
/** Why the head of a request is refused. */
export const REQUEST_LINE = refuse('The request line is not METHOD TARGET HTTP/1.1.')
export const FIELDS = refuse('A header line is malformed.')
export const LENGTHS = refuse('The length of the body is told more than once, or is no number.')
const ENCODING = refuse('The only transfer encoding is "chunked", and not in HTTP/1.0.')
const HOST = refuse('A request needs one Host header.')
const TARGET = refuse('The target of the request must be a path of this host.')
export const UNDERSCORE = refuse('A header that frames the body is spelt with "_".')
const VERSION: Refusal = { status: 501, message: 'Only HTTP/1.0 and HTTP/1.1 are spoken here.' }
const CONNECT: Refusal = { status: 501, message: 'No tunnels are made here.' }

const SPACE = 32
const SLASH = 47
const VERSION_1 = Buffer.from('HTTP/1.')

/** How the end of a body is marked. */
export type Framing = 'none' | 'length' | 'chunked' | 'close'

/** Methods that may be sent again if a connection ends without a response (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** Reports whether a request of this method may be sent again if its connection ends without a response. */
export const isIdempotent = (method: string): boolean => IDEMPOTENT.has(method)

/** The parts of a request's head that the gateway needs. Each `parse` overwrites them. */
export class RequestHead {
  method = ''
  /** Start and end of the head in the parsed bytes. */
  start = 0
  end = 0
  /** Path and query as they were sent, in the head's bytes. */
  targetStart = 0
  targetEnd = 0
  /** Start of the field lines. */
  fieldsStart = 0
  minor = 1
  host: string | null = null
  framing: Framing = 'none'
  length = 0
  keepAlive = true
  /** Whether the client asks for a WebSocket. */
  upgrade = false
  /** Whether the client accepts trailers. */
  trailers = false
  readonly connection = new ConnectionOptions()

  /**
   * @param fields table that `parse` fills; several heads may share it if they are read one after the other
   */
  constructor(readonly fields: Fields) {}

  /** Whether the request may be sent again. */
  get repeatable(): boolean {
    return this.framing === 'none' && isIdempotent(this.method)
  }

  /**
   * Parses a head (RFC 9112, sections 3 and 6.3) into this object and `fields`.
   *
   * @param start start of the head
   * @param end end of the head, after its empty line
   * @returns the refusal of an invalid head, or null
   */
  parse(bytes: Buffer, start: number, end: number): Refusal | null {
    this.start = start
    this.end = end
    return this.#requestLine(bytes, start) ?? this.#fields(bytes, end)
  }

  #requestLine(bytes: Buffer, start: number): Refusal | null {
    let at = start
    while (TOKEN[bytes[at] as number] === 1) at += 1
    if (at === start || bytes[at] !== SPACE) return REQUEST_LINE
    this.method = bytes.toString('latin1', start, at)
    if (this.method === 'CONNECT') return CONNECT
    at += 1
    this.targetStart = at
    while ((bytes[at] as number) > SPACE && bytes[at] !== 127) at += 1
    this.targetEnd = at
    if (bytes[at] !== SPACE) return REQUEST_LINE
    at += 1
    for (let index = 0; index < VERSION_1.length; index += 1) {
      if (bytes[at + index] !== VERSION_1[index]) {
        return bytes.toString('latin1', at, at + 5) === 'HTTP/' ? VERSION : REQUEST_LINE
      }
    }
    at += VERSION_1.length
    this.minor = (bytes[at] as number) - 48
    if (this.minor !== 0 && this.minor !== 1) return VERSION
    if (bytes[at + 1] !== 13 || bytes[at + 2] !== 10) return REQUEST_LINE
    this.fieldsStart = at + 3
    return null
  }

  #fields(bytes: Buffer, end: number): Refusal | null {
    const { fields } = this
    if (!fields.scan(bytes, this.fieldsStart, end)) return FIELDS
    this.host = null
    this.framing = 'none'
    this.length = 0
    this.keepAlive = this.minor === 1
    this.trailers = false
    this.connection.reset()
    let upgrade = ''
    let hosts = 0
    for (let index = 0; index < fields.count; index += 1) {
      switch (fields.kind[index]) {
        case Field.other:
        case Field.hop:
        case Field.forwarded:
        case Field.cookie:
        case Field.setCookie:
          break
        case Field.host:
          hosts += 1
          this.host = fields.value(bytes, index)
          break
        case Field.contentLength:
          if (fields.hasUnderscore(bytes, index)) return UNDERSCORE
          if (this.framing !== 'none') return LENGTHS
          this.framing = 'length'
          this.length = fields.number(bytes, index)
          if (this.length < 0) return LENGTHS
          break
        case Field.transferEncoding:
          if (fields.hasUnderscore(bytes, index)) return UNDERSCORE
          if (this.framing === 'length') return LENGTHS
          if (this.framing === 'chunked' || this.minor === 0) return ENCODING
          if (fields.value(bytes, index).toLowerCase() !== 'chunked') return ENCODING
          this.framing = 'chunked'
          break
        case Field.connection:
          this.connection.add(fields.value(bytes, index))
          break
        case Field.upgrade:
          upgrade = upgrade === '' ? fields.value(bytes, index).toLowerCase() : 'several'
          break
        case Field.te:
          this.trailers ||= /(?:^|,)\s*trailers\s*(?:,|$)/i.test(fields.value(bytes, index))
          break
      }
    }
    if (hosts > 1 || (hosts === 0 && this.minor === 1)) return HOST
    if (this.framing === 'length' && this.length === 0) this.framing = 'none'
    // Keep-alive with HTTP/1.0 is not worth its rules.
    if (this.minor === 0 || this.connection.close) this.keepAlive = false
    this.upgrade =
      upgrade === 'websocket' &&
      this.connection.upgrade &&
      this.method === 'GET' &&
      this.framing === 'none' &&
      this.minor === 1
    return this.#target(bytes)
  }

  /**
   * Accepts a path, `*` for OPTIONS, or an absolute URL of the same host, of which the path is kept (RFC 9112,
   * section 3.2).
   */
  #target(bytes: Buffer): Refusal | null {
    if (bytes[this.targetStart] === SLASH) return null
    const target = bytes.toString('latin1', this.targetStart, this.targetEnd)
    if (target === '*') return this.method === 'OPTIONS' ? null : TARGET
    const [, start = '', authority] = /^(http:\/\/([^/?#@]+))\//i.exec(target) ?? []
    if (authority === undefined || authority.toLowerCase() !== this.host?.toLowerCase()) return TARGET
    this.targetStart += start.length
    return null
  }
}
