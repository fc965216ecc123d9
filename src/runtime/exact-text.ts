import { unfinished, utf8Text } from './decode.ts'

/*
 * Text that holds bytes exactly, so that what works on text, such as masks and cuts, works on any output: a byte that is
 * not UTF-8 is the lone surrogate U+DC00 + byte (as in Python's PEP 383). No decoded text has one.
 */

/** Added to a byte that is not UTF-8. */
const ESCAPE = 0xdc00

/** Matches bytes that are not UTF-8. With the flag `u` the second half of a pair is none. */
const ESCAPED = /([\udc80-\udcff]+)/u

/** Decodes bytes exactly. */
export function exactText(bytes: Uint8Array): string {
  const whole = utf8Text(bytes)
  if (whole !== null) return whole
  let text = ''
  let from = 0
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length === 0) {
      text += (utf8Text(bytes.subarray(from, at)) ?? '') + String.fromCharCode(ESCAPE + (bytes[at] ?? 0))
      from = at + 1
    }
    at += length || 1
  }
  return text + (utf8Text(bytes.subarray(from)) ?? '')
}

/** Returns the bytes of a text that `exactText` decoded. */
export function exactBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text)
  return Buffer.concat(
    text
      .split(ESCAPED)
      .map((part, index) =>
        index % 2 === 0 ? Buffer.from(part) : Buffer.from([...part].map((one) => one.charCodeAt(0) - ESCAPE)),
      ),
  )
}

/** Decodes bytes that arrive in pieces exactly. Holds back a character until it is complete. */
export class ExactDecoder {
  #rest = new Uint8Array(0)

  /** Takes the next piece; returns the text that is certain. */
  push(piece: Uint8Array): string {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece
    const end = bytes.length - unfinished(bytes)
    this.#rest = bytes.slice(end)
    return exactText(bytes.subarray(0, end))
  }

  /** Returns what was held back, after the last piece. */
  end(): string {
    const rest = this.#rest
    this.#rest = new Uint8Array(0)
    return exactText(rest)
  }
}

/** Returns the bytes of the UTF-8 character at a position; 0 if there is none (RFC 3629, 4). */
function characterAt(bytes: Uint8Array, at: number): number {
  const [first = 0, second = 0] = [bytes[at], bytes[at + 1]]
  if (first < 0x80) return 1
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
  if (first < 0xc2 || first > 0xf4) return 0
  const lowest = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const highest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  if (second < lowest || second > highest) return 0
  for (let more = 2; more < length; more++) if (((bytes[at + more] ?? 0) & 0xc0) !== 0x80) return 0
  return length
}
