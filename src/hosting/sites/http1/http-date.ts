/** Formats the current time as a Date field (RFC 9110, section 6.6.1), at most once a second. */
export class HttpDate {
  readonly #now: () => number
  #second = 0
  #text = ''

  /** @param now milliseconds since 1970 */
  constructor(now: () => number) {
    this.#now = now
  }

  toString(): string {
    const second = Math.floor(this.#now() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#text = new Date(second * 1_000).toUTCString()
    }
    return this.#text
  }
}
