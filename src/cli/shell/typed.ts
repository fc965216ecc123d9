/** What a person wants by typed bytes. */
type Wish = { readonly type: 'send'; readonly data: Buffer } | { readonly type: 'leave' | 'help' }

const TILDE = 0x7e
const LINE_ENDS: ReadonlySet<number> = new Set([0x0a, 0x0d])

/**
 * Finds the escapes in what is typed, as ssh has them: at the start of a line `~.` leaves, `~?` explains, and `~~` is
 * a tilde.
 */
export class EscapeReader {
  #isLineStart = true
  #isAfterTilde = false

  /** Returns the wishes in the next bytes, in order. Further bytes after `leave` are dropped. */
  read(bytes: Buffer): Wish[] {
    const wishes: Wish[] = []
    let kept: number[] = []
    const flush = (): void => {
      if (kept.length > 0) wishes.push({ type: 'send', data: Buffer.from(kept) })
      kept = []
    }
    // Nothing to look for in a paste or a program's keys: passed as it is.
    if (!this.#isAfterTilde && !bytes.includes(TILDE)) {
      const last = bytes.at(-1)
      if (last !== undefined) this.#isLineStart = LINE_ENDS.has(last)
      return bytes.length > 0 ? [{ type: 'send', data: bytes }] : []
    }
    for (const byte of bytes) {
      if (this.#isAfterTilde) {
        this.#isAfterTilde = false
        const wish = String.fromCharCode(byte)
        if (wish === '.') {
          flush()
          return [...wishes, { type: 'leave' }]
        }
        if (wish === '?') {
          flush()
          wishes.push({ type: 'help' })
          this.#isLineStart = true
          continue
        }
        kept.push(TILDE)
        if (wish === '~') {
          this.#isLineStart = false
          continue
        }
      } else if (byte === TILDE && this.#isLineStart) {
        this.#isAfterTilde = true
        continue
      }
      kept.push(byte)
      this.#isLineStart = LINE_ENDS.has(byte)
    }
    flush()
    return wishes
  }
}
