import { PROXY_HEAD_LIMIT } from './proxy-request.ts'
import { ReceivedBytes } from './received-bytes.ts'

/** The end of a head. Programs take line ends without a carriage return, too (RFC 9112, section 2.2). */
const HEAD_END = /\r?\n\r?\n/

const LINE_ENDS: ReadonlySet<number | undefined> = new Set([10, 13])

/** Headers by which a server says how long it keeps the connection. */
const KEEPING = /^(?:connection|proxy-connection|keep-alive)[ \t]*:/i

/**
 * Has a response say that its connection ends with it, whatever the server says. A program that took the connection for one
 * to be used again would send the next request there, which may be for another host and have its credentials.
 */
export class ClosingResponse {
  readonly #received = new ReceivedBytes()
  /** Bytes in which no end of a head is. */
  #searched = 0
  #isPassing = false

  /** Takes bytes of the response. @returns those to be passed on; null if its head is too long */
  pass(bytes: Uint8Array): Uint8Array | null {
    if (this.#isPassing) return bytes
    this.#received.append(bytes)
    const passed: Uint8Array[] = []
    for (let head = this.#takeHead(); head !== null; head = this.#takeHead()) {
      passed.push(Buffer.from(head, 'latin1'))
      if (this.#isPassing) return Buffer.concat([...passed, this.rest()])
    }
    return this.#received.bytes.length > PROXY_HEAD_LIMIT ? null : Buffer.concat(passed)
  }

  /** Takes what has come of a head whose end has not. */
  rest(): Uint8Array {
    return this.#received.take(this.#received.bytes.length)
  }

  /** Takes a head. Returns null if its end has not come. */
  #takeHead(): string | null {
    // Programs skip empty lines before it.
    while (LINE_ENDS.has(this.#received.bytes[0])) this.#received.take(1)
    const { bytes } = this.#received
    const from = Math.max(0, this.#searched - 3)
    const end = HEAD_END.exec(bytes.toString('latin1', from, PROXY_HEAD_LIMIT))
    this.#searched = end === null ? bytes.length : 0
    if (end === null) return null
    const text = this.#received.take(from + end.index + end[0].length).toString('latin1')
    const [line = '', ...headers] = text
      .trimEnd()
      // A header that goes on in the next line (RFC 9112, section 5.2).
      .replace(/\r?\n[ \t]+/g, ' ')
      .split(/\r?\n/)
    const status = Number(/^HTTP\/\d\.\d (\d{3})/.exec(line)?.[1])
    // The final one comes after those that inform (RFC 9110, section 15.2), and no other after a change of protocol.
    this.#isPassing = !(status >= 100 && status < 200) || status === 101
    if (!this.#isPassing || status === 101) return text
    const kept = headers.filter((header) => !KEEPING.test(header))
    return [line, ...kept, 'Connection: close', '', ''].join('\r\n')
  }
}
