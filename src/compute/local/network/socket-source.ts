import { closeSync } from 'node:fs'
import { OWN_MARK } from './rules.ts'
import { type SocketCalls, socketAddress, systemError } from './socket-calls.ts'

/** Port of the listeners by which new sockets are made. */
const SOURCE_PORT = 65_534

/** Milliseconds after which the socket of an ended connection is closed at last; it may take twice as long. */
const KEPT_MS = 100

/** Largest number of sockets of ended connections that are kept. @bound program */
const MAX_KEPT = 256

/** The blank TCP sockets by which a `SocketSource` makes others, as open descriptors. */
export interface SourceSockets {
  readonly listener: number
  readonly connector: number
}

/**
 * Makes blank TCP sockets in a network out of two: one connects to the other, which listens; the accepted end is a new
 * socket of that network, and both become blank by disconnecting. This takes nothing of the sandbox's process, which may
 * be stopped, out of processor time or taken over.
 *
 * It costs as much as opening a connection. So the sockets of ended connections are kept for a moment: one whose peer
 * has closed its end too is as good as a new one.
 *
 * A program of the server may connect to the listener too. The socket accepted from it serves as well, since it is
 * disconnected before its use.
 */
export class SocketSource {
  readonly #calls: SocketCalls
  readonly #address: Uint8Array
  readonly #listener: number
  readonly #connector: number
  /** Sockets of ended connections, in the order of their end. */
  readonly #kept: number[] = []
  /** How many of `#kept`, the first ones, the timer closes next. */
  #overdue = 0
  #timer: Timer | null = null
  /** Whether what the sockets send has `OWN_MARK`. */
  readonly isMarked: boolean

  /** Takes ownership of both sockets. */
  constructor(calls: SocketCalls, host: '127.0.0.1' | '::1', { listener, connector }: SourceSockets) {
    this.#calls = calls
    this.#address = socketAddress(host, SOURCE_PORT)
    this.#listener = listener
    this.#connector = connector
    this.isMarked = calls.mark(listener, OWN_MARK) === 0
    const error = calls.bind(listener, this.#address) || calls.listen(listener)
    if (error !== 0) throw systemError(error, `listen on ${host}, port ${SOURCE_PORT}`)
  }

  /** Returns a blank socket, the caller's to close. */
  make(): number {
    const kept = this.#kept[0]
    if (kept !== undefined && this.#calls.isUnconnected(kept)) {
      this.#kept.shift()
      this.#overdue = Math.max(this.#overdue - 1, 0)
      this.#calls.disconnect(kept)
      return kept
    }
    const error = this.#calls.connect(this.#connector, this.#address)
    const made = this.#calls.accept(this.#listener)
    this.#calls.disconnect(this.#connector)
    if (made < 0) throw systemError(error, "make a socket in the server's network")
    this.#calls.disconnect(made)
    return made
  }

  /**
   * Takes a socket of `make` back at the end of its connection. The peer sees the end at once, and a reset if it sends on.
   * If the peer does not end the connection too, it is reset soon.
   *
   * @param end closes the descriptor
   */
  takeBack(descriptor: number, end: () => void): void {
    // A peer that waits for its bytes to be read sees no end. The close of a socket with unread bytes resets it.
    const isKept = this.#kept.length < MAX_KEPT && !this.#calls.hasUnread(descriptor)
    const copy = isKept ? this.#calls.duplicate(descriptor) : -1
    end()
    if (copy < 0) return
    this.#calls.shutdown(copy)
    this.#kept.push(copy)
    this.#timer ??= setTimeout(() => this.#closeOverdue(), KEPT_MS)
  }

  close(): void {
    clearTimeout(this.#timer ?? undefined)
    for (const descriptor of [this.#listener, this.#connector, ...this.#kept.splice(0)]) closeSync(descriptor)
  }

  #closeOverdue(): void {
    for (const descriptor of this.#kept.splice(0, this.#overdue)) closeSync(descriptor)
    this.#overdue = this.#kept.length
    this.#timer = this.#overdue === 0 ? null : setTimeout(() => this.#closeOverdue(), KEPT_MS)
  }
}
