import { setsSession } from '../../../http/session-cookie.ts'
import { Field, type Fields } from './fields.ts'
import { ConnectionOptions, parseLength } from './head.ts'
import type { Framing } from './request-head.ts'

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n$/

const UNDERSCORE = 'a line of its header that frames the body is spelt with "_"'

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
          this.length = parseLength(fields.value(bytes, index))
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

  #statusLine(bytes: Buffer, start: number, end: number): boolean {
    const [, minor, status] = STATUS_LINE.exec(bytes.toString('latin1', start, end)) ?? []
    this.minor = Number(minor)
    this.status = Number(status)
    return status !== undefined
  }
}
