/** Sends a progress notification to the client. */
type Notify = (progress: number, message: string) => Promise<void> | void

/** Milliseconds between two notifications. Text in between is sent together. */
const PACE_MS = 100

/** Milliseconds of silence after which a heartbeat is sent, so clients keep waiting. */
const HEARTBEAT_MS = 10_000

/** Largest number of characters in one notification. The newest ones are kept. @bound reader */
const MAX_MESSAGE_LENGTH = 16 * 1024

/**
 * Largest number of characters sent during one call. Further ones are only counted. The result contains them all.
 * @bound reader
 */
const MAX_TOTAL_LENGTH = 4 * 1024 * 1024

/**
 * Reports the progress of one call: its output, as it is printed. A client cannot slow a call down, so rate and
 * amount are limited. The progress value counts notifications, since the total is unknown (MCP, "Progress").
 */
export class Progress implements Disposable {
  readonly #notify: Notify
  #waiting = ''
  #sentLength = 0
  #totalLength = 0
  #notifications = 0
  #pace: ReturnType<typeof setTimeout> | null = null
  #heartbeat: ReturnType<typeof setInterval>

  constructor(notify: Notify) {
    this.#notify = notify
    this.#heartbeat = this.#startHeartbeat()
  }

  /** Adds printed text. */
  add(text: string): void {
    if (text === '') return
    this.#totalLength += text.length
    this.#waiting += text
    if (this.#waiting.length > 2 * MAX_MESSAGE_LENGTH)
      this.#waiting = this.#waiting.slice(-MAX_MESSAGE_LENGTH - 1)
    if (this.#pace === null) this.#flush()
  }

  /** Sends the text that is waiting. Nothing is sent afterwards. */
  [Symbol.dispose](): void {
    if (this.#pace) clearTimeout(this.#pace)
    clearInterval(this.#heartbeat)
    this.#pace = null
    if (this.#waiting !== '') this.#flush()
    if (this.#pace) clearTimeout(this.#pace)
    clearInterval(this.#heartbeat)
  }

  #flush(): void {
    const text = this.#waiting
    this.#waiting = ''
    this.#pace = setTimeout(() => {
      this.#pace = null
      if (this.#waiting !== '') this.#flush()
    }, PACE_MS)
    clearInterval(this.#heartbeat)
    this.#heartbeat = this.#startHeartbeat()
    this.#sentLength += Math.min(text.length, MAX_MESSAGE_LENGTH)
    const newest =
      text.length > MAX_MESSAGE_LENGTH ? `[…]${text.slice(-MAX_MESSAGE_LENGTH).toWellFormed()}` : text
    this.#send(this.#sentLength > MAX_TOTAL_LENGTH ? `${this.#totalLength} characters so far.` : newest)
  }

  #startHeartbeat(): ReturnType<typeof setInterval> {
    return setInterval(() => this.#send('Still running.'), HEARTBEAT_MS)
  }

  #send(message: string): void {
    this.#notifications += 1
    // The call itself notices that a client has disconnected.
    void Promise.resolve(this.#notify(this.#notifications, message)).catch(() => {})
  }
}
