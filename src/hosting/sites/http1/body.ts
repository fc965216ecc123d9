import { CR, Field, kindOf, LF, TEXT, TOKEN } from './fields.ts'
import type { Framing } from './request-head.ts'

/** Bytes that chunk extensions and trailers of one body may have together. */
const EXTRAS_LIMIT = 16 * 1024
/** Hexadecimal digits of a chunk's size: more than any body has. */
const SIZE_DIGITS = 12

const SEMICOLON = 59
const COLON = 58

/** States of the parser of a chunked body: the element that the next octet belongs to. */
const State = {
  SizeStart: 0,
  Size: 1,
  Extension: 2,
  SizeLf: 3,
  Data: 4,
  DataCr: 5,
  DataLf: 6,
  TrailerStart: 7,
  TrailerName: 8,
  TrailerValue: 9,
  TrailerLf: 10,
  EndLf: 11,
} as const

/**
 * Finds the end of a body in the bytes of a connection (RFC 9112, sections 6.3 and 7.1). The caller passes the bytes
 * on unchanged, so this checks their syntax as strictly as that of a head.
 */
export class Body {
  framing: Framing = 'none'
  /** Whether the body has ended, or there is none. */
  done = true
  /** Start and end of each piece of content among the chunks. Collected if set before the first `consume`. */
  pieces: number[] | null = null
  #remaining = 0
  #state: (typeof State)[keyof typeof State] = State.SizeStart
  #digits = 0
  #extras = 0
  /** Name of the current trailer, to recognise fields that a trailer may not carry. */
  #trailerName: number[] = []

  /**
   * Begins a body.
   *
   * @param length of the content in bytes, if the framing is `length`
   */
  begin(framing: Framing, length: number): void {
    this.framing = framing
    this.#remaining = length
    this.done = framing === 'none' || (framing === 'length' && length === 0)
    this.pieces = null
    this.#state = State.SizeStart
    this.#digits = 0
    this.#extras = 0
  }

  /**
   * Consumes further bytes.
   *
   * @returns the end of the body's part of them, or -1 if they are malformed
   */
  consume(bytes: Uint8Array, from: number, to: number): number {
    if (this.done) return from
    if (this.framing === 'chunked') return this.#chunks(bytes, from, to)
    if (this.framing === 'close') return to
    const end = Math.min(to, from + this.#remaining)
    this.#remaining -= end - from
    this.done = this.#remaining === 0
    return end
  }

  #chunks(bytes: Uint8Array, from: number, to: number): number {
    let at = from
    while (at < to) {
      if (this.#state === State.Data) {
        const end = Math.min(to, at + this.#remaining)
        this.pieces?.push(at, end)
        this.#remaining -= end - at
        at = end
        if (this.#remaining === 0) this.#state = State.DataCr
        continue
      }
      if (!this.#step(bytes[at] as number)) return -1
      at += 1
      if (this.done) return at
    }
    return at
  }

  /**
   * Consumes one octet outside the content.
   *
   * @returns whether it is valid there
   */
  #step(octet: number): boolean {
    switch (this.#state) {
      case State.SizeStart:
        this.#remaining = 0
        this.#digits = 0
        this.#state = State.Size
        return this.#digit(octet)
      case State.Size:
        if (octet === CR) this.#state = State.SizeLf
        else if (octet === SEMICOLON) this.#state = State.Extension
        else return this.#digit(octet)
        return true
      case State.Extension:
        if (octet === CR) this.#state = State.SizeLf
        else return TEXT[octet] === 1 && this.#extra()
        return true
      case State.SizeLf:
        this.#state = this.#remaining === 0 ? State.TrailerStart : State.Data
        return octet === LF
      case State.DataCr:
        this.#state = State.DataLf
        return octet === CR
      case State.DataLf:
        this.#state = State.SizeStart
        return octet === LF
      case State.TrailerStart:
        if (octet === CR) {
          this.#state = State.EndLf
          return true
        }
        this.#trailerName = []
        this.#state = State.TrailerName
        return this.#nameOctet(octet)
      case State.TrailerName:
        if (octet !== COLON) return this.#nameOctet(octet)
        this.#state = State.TrailerValue
        // Trailers must not carry framing, nor fields that only the gateway sets (RFC 9110, section 6.5.1).
        return kindOf(Uint8Array.from(this.#trailerName), 0, this.#trailerName.length) === Field.other
      case State.TrailerValue:
        if (octet === CR) this.#state = State.TrailerLf
        else return TEXT[octet] === 1 && this.#extra()
        return true
      case State.TrailerLf:
        this.#state = State.TrailerStart
        return octet === LF
      case State.EndLf:
        this.done = octet === LF
        return this.done
      default:
        return false
    }
  }

  #digit(octet: number): boolean {
    const value =
      octet >= 48 && octet <= 57
        ? octet - 48
        : (octet | 32) >= 97 && (octet | 32) <= 102
          ? (octet | 32) - 87
          : -1
    this.#remaining = this.#remaining * 16 + value
    this.#digits += 1
    return value !== -1 && this.#digits <= SIZE_DIGITS
  }

  #nameOctet(octet: number): boolean {
    this.#trailerName.push(octet)
    return TOKEN[octet] === 1 && this.#extra()
  }

  #extra(): boolean {
    this.#extras += 1
    return this.#extras <= EXTRAS_LIMIT
  }
}
