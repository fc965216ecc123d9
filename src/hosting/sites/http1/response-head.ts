import { setsSession } from '../../../http/session-cookie.ts'
import { CR, Field, type Fields, TEXT } from './fields.ts'
import { ConnectionOptions, hasBareLf } from './head.ts'
import type { Framing } from './request-head.ts'

const VERSION_1 = Buffer.from('HTTP/1.')
const SPACE = 32
const ZERO = 48

const UNDERSCORE = 'a line of its header that frames the body is spelt with "_"'

/**
 * Returns why bytes without the end of a head cannot become the head of a response, or null if they can: the end would
 * never come.
 */
export function faultOfPartial(bytes: Buffer): string | null {
  for (let index = 0; index < Math.min(bytes.length, VERSION_1.length); index += 1) {
    if (bytes[index] !== VERSION_1[index]) return 'it does not speak HTTP/1.1'
  }
  return hasBareLf(bytes) ? 'a line of its header ends without its CR' : null
}

/** The parts of a response's head that the gateway needs. Each `parse` overwrites them. */
export class ResponseHead {
  status = 0
  minor = 1
  fieldsStart = 0
  framing: Framing = 'close'
  length = 0
  /** Whether the app leaves the connection open. */
  keepAlive = true
  /** Whether a line has to be removed, or the first one rewritten, for the client. */
  altered = false
  readonly connection = new ConnectionOptions()

  /**
   * @param fields table that `parse` fills; several heads may share it if they are read one after the other
   */
  constructor(readonly fields: Fields) {}

  /**
   * Parses a head (RFC 9112, sections 4 and 6.3) into this object and `fields`.
   *
   * @param start start of the head
   * @param end end of the head, after its empty line
   * @param method the request's, which decides whether the response may have a body
   * @returns why the response cannot be passed on, or null
   */
  parse(bytes: Buffer, start: number, end: number, method: string): string | null {
    const lineEnd = bytes.indexOf(10, start) + 1
    this.fieldsStart = lineEnd
    const { fields } = this
    if (!this.#statusLine(bytes, start, lineEnd)) return 'its status line is malformed'
    if (!fields.scan(bytes, lineEnd, end)) return 'a line of its header is malformed'
    this.framing = 'close'
    this.length = 0
    this.keepAlive = this.minor === 1
    this.altered = this.minor === 0
    this.connection.reset()
    for (let index = 0; index < fields.count; index += 1) {
      switch (fields.kind[index]) {
        case Field.contentLength:
          if (fields.hasUnderscore(bytes, index)) return UNDERSCORE
          if (this.framing !== 'close') return 'it tells its length more than once'
          this.framing = 'length'
          this.length = fields.number(bytes, index)
          if (this.length < 0) return 'its Content-Length is no number'
          break
        case Field.transferEncoding:
          if (fields.hasUnderscore(bytes, index)) return UNDERSCORE
          if (this.framing !== 'close') return 'it tells its length more than once'
          if (fields.value(bytes, index).toLowerCase() !== 'chunked' || this.minor === 0)
            return 'its transfer encoding is not "chunked"'
          this.framing = 'chunked'
          break
        case Field.connection:
          this.connection.add(fields.value(bytes, index))
          this.altered = true
          break
        case Field.setCookie:
          this.altered ||= setsSession(fields.value(bytes, index))
          break
        case Field.hop:
        case Field.upgrade:
          this.altered = true
          break
      }
    }
    if (this.connection.close) this.keepAlive = false
    else if (this.connection.keepAlive) this.keepAlive = true
    if (method === 'HEAD' || this.status < 200 || this.status === 204 || this.status === 304) {
      this.framing = 'none'
    } else if (this.framing === 'close') this.keepAlive = false
    return null
  }

  /** Parses `HTTP/1.M NNN REASON` with its CRLF by octets: a regular expression takes longer than the fields. */
  #statusLine(bytes: Buffer, start: number, end: number): boolean {
    let at = start
    for (let index = 0; index < VERSION_1.length; index += 1, at += 1) {
      if (bytes[at] !== VERSION_1[index]) return false
    }
    this.minor = (bytes[at] as number) - ZERO
    if ((this.minor !== 0 && this.minor !== 1) || bytes[at + 1] !== SPACE) return false
    at += 2
    this.status = 0
    for (const codeEnd = at + 3; at < codeEnd; at += 1) {
      const digit = (bytes[at] as number) - ZERO
      if (!(digit >= 0 && digit <= 9)) return false
      this.status = this.status * 10 + digit
    }
    if (this.status < 100) return false
    if (bytes[at] === SPACE) while (TEXT[bytes[at] as number] === 1) at += 1
    return bytes[at] === CR && at + 2 === end
  }
}
