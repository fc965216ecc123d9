const FIRST_DELAY_MS = 300
const LONGEST_DELAY_MS = 10_000

/**
 * A connection to the chat that comes back by itself: after growing pauses, each of a random length so that not
 * everybody returns at the same moment, and at once when the network is back.
 */
export class Connection extends EventTarget {
  #socket = null
  #timer
  #failures = 0
  #wanted = false

  /** Connects and stays connected. Events: `open`, `message` (detail: what came), `lost`. */
  open() {
    this.#wanted = true
    addEventListener('online', this.#now)
    this.#connect()
  }

  close() {
    this.#wanted = false
    removeEventListener('online', this.#now)
    clearTimeout(this.#timer)
    this.#socket?.close()
  }

  /** Whether it was handed over; if not, the connection is away at the moment. */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(JSON.stringify(message))
    return true
  }

  #now = () => {
    if (this.#socket === null) this.#connect()
  }

  #connect() {
    clearTimeout(this.#timer)
    const socket = new WebSocket('/ws')
    this.#socket = socket
    socket.addEventListener('open', () => {
      this.#failures = 0
      this.dispatchEvent(new Event('open'))
    })
    socket.addEventListener('message', ({ data }) => {
      this.dispatchEvent(new CustomEvent('message', { detail: JSON.parse(data) }))
    })
    socket.addEventListener('close', () => {
      this.#socket = null
      if (!this.#wanted) return
      this.dispatchEvent(new Event('lost'))
      const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures)
      this.#failures += 1
      this.#timer = setTimeout(this.#now, delay * (0.5 + Math.random() / 2))
    })
  }
}
