/** Tells a client how far a call is. */
export type Notify = (progress: number, message: string) => Promise<void> | void

/** Milliseconds between two notices: what comes in between is told together. */
const PACE_MS = 100

/** Milliseconds of silence after which is said that it still runs, so that clients do not give up. */
const HEARTBEAT_MS = 10_000

/** Characters that one notice tells; of more, the newest. */
const LONGEST = 16 * 1024

/** Characters that are told during one call; after that, only how many there were. The result holds them whole. */
const MOST = 4 * 1024 * 1024

/**
 * The progress of one call: what it prints, told as it comes. A client cannot slow it down, so that the pace and the
 * amount are bounded. Progress counts the notices, since nobody knows the total (MCP, "Progress").
 */
export class Progress implements Disposable {
  readonly #notify: Notify
  #waiting = ''
  #told = 0
  #seen = 0
  #notices = 0
  #pace: ReturnType<typeof setTimeout> | null = null
  #heartbeat: ReturnType<typeof setInterval>

  constructor(notify: Notify) {
    this.#notify = notify
    this.#heartbeat = this.#beat()
  }

  /** Something was printed. */
  say(text: string): void {
    if (text === '') return
    this.#seen += text.length
    this.#waiting += text
    if (this.#waiting.length > 2 * LONGEST) this.#waiting = this.#waiting.slice(-LONGEST - 1)
    if (this.#pace === null) this.#tell()
  }

  /** Tells what waits. Nothing is told afterwards. */
  [Symbol.dispose](): void {
    if (this.#pace) clearTimeout(this.#pace)
    clearInterval(this.#heartbeat)
    this.#pace = null
    if (this.#waiting !== '') this.#tell()
    if (this.#pace) clearTimeout(this.#pace)
    clearInterval(this.#heartbeat)
  }

  #tell(): void {
    const text = this.#waiting
    this.#waiting = ''
    this.#pace = setTimeout(() => {
      this.#pace = null
      if (this.#waiting !== '') this.#tell()
    }, PACE_MS)
    clearInterval(this.#heartbeat)
    this.#heartbeat = this.#beat()
    this.#told += Math.min(text.length, LONGEST)
    const newest = text.length > LONGEST ? `[…]${text.slice(-LONGEST).toWellFormed()}` : text
    this.#send(this.#told > MOST ? `${this.#seen} characters so far.` : newest)
  }

  #beat(): ReturnType<typeof setInterval> {
    return setInterval(() => this.#send('Still running.'), HEARTBEAT_MS)
  }

  #send(message: string): void {
    this.#notices += 1
    // A client that has gone is told nothing; the call itself learns of that.
    void Promise.resolve(this.#notify(this.#notices, message)).catch(() => {})
  }
}
