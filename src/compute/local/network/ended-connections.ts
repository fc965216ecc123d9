import { closeSync } from 'node:fs'
import type { LoopbackHost } from '../../sandbox.ts'
import type { SocketCalls } from './socket-calls.ts'

/** The groups that the kernel tells of ended TCP sockets, of IPv4 and of IPv6: `enum sknetlink_groups` of linux/sock_diag.h. */
const GROUPS = [1, 3]

/** The attribute with `struct tcp_info`: INET_DIAG_INFO of linux/inet_diag.h. */
const INFO = 2

/** The position of `tcpi_bytes_received` in `struct tcp_info`. */
const BYTES_RECEIVED = 128

/** Bytes of `struct nlmsghdr` with `struct inet_diag_msg` after it, and positions in them. */
const HEAD_BYTES = 88
const PORT = 20
const PEER_PORT = 22
const ADDRESS = 24
const UNREAD = 72

/** Longest message; the kernel's have about 400 bytes. @bound program */
const MAX_MESSAGE = 4096

/** Most messages that are read at a look: programs may end connections faster than that. @bound program */
const MOST_MESSAGES = 2_000

/** Milliseconds in which a program has to close its end and the kernel to tell of it, and between two looks. */
const PATIENCE_MS = 1_000
const LOOK_MS = 1

/** A connection of berth's to a program of the server. */
interface NetworkEnds {
  readonly host: LoopbackHost
  /** The program's port. */
  readonly port: number
  /** Berth's port. */
  readonly localPort: number
}

/** What is known of a watched connection. */
interface Watched {
  /** Bytes that the program has read; null while its end is open. */
  read: number | null
}

/** A connection whose end is watched. */
export interface WatchedEnd {
  /**
   * Resolves with the number of bytes that the program has read, when its end is closed; null if it is not closed soon,
   * or the kernel does not tell. Never throws.
   */
  bytesRead(): Promise<number | null>
  /** Ends the watch. */
  stop(): void
}

/**
 * Tells how much the programs of a server have read of connections that they have closed. The kernel reports every TCP
 * socket that it frees (sock_diag(7)), with the bytes that it has received and those among them that nobody has read.
 * What was acknowledged is another matter: the kernel acknowledges for a program that does not read, and may not have
 * acknowledged yet what one has read.
 *
 * The kernel clears these numbers, and the peer's port, of a connection that a program resets on purpose (SO_LINGER of 0
 * seconds) after it has read all that had come by then. What was on its way at that moment cannot be told from what it has
 * read, so nothing is known of such a connection.
 *
 * Nothing is reported while no connection is watched.
 */
export class EndedConnections {
  readonly #calls: SocketCalls
  readonly #socket: number
  /** The watched connections by `keyOf`. */
  readonly #watched = new Map<string, Watched>()
  readonly #buffer = Buffer.alloc(MAX_MESSAGE)
  #closed = false

  /**
   * Takes ownership of the socket.
   *
   * @param socket see `ENDS_SOCKET`
   */
  constructor(calls: SocketCalls, socket: number) {
    this.#calls = calls
    this.#socket = socket
  }

  /** Begins to watch an open connection. Returns null if the kernel refuses that, or reports too much. */
  watch(ends: NetworkEnds): WatchedEnd | null {
    if (this.#watched.size === 0 && !this.#subscribe(true)) return null
    // What was reported before is of an earlier connection with the same ports.
    if (!this.#readAll()) {
      if (this.#watched.size === 0) this.#subscribe(false)
      return null
    }
    const key = keyOf(ends.host, ends.port, ends.localPort)
    const watched: Watched = { read: null }
    this.#watched.set(key, watched)
    return { bytesRead: () => this.#bytesRead(watched), stop: () => this.#stop(key, watched) }
  }

  /** Closes the socket. May be called once. */
  close(): void {
    this.#closed = true
    closeSync(this.#socket)
  }

  async #bytesRead(watched: Watched): Promise<number | null> {
    const started = performance.now()
    for (let elapsed = 0; ; elapsed = performance.now() - started) {
      this.#readAll()
      if (watched.read !== null || elapsed > PATIENCE_MS) return watched.read
      await Bun.sleep(LOOK_MS)
    }
  }

  #stop(key: string, watched: Watched): void {
    // A later connection may have the same ports.
    if (this.#watched.get(key) === watched) this.#watched.delete(key)
    if (this.#watched.size === 0) this.#subscribe(false)
  }

  #subscribe(isMember: boolean): boolean {
    if (this.#closed) return false
    const errors = GROUPS.map((group) => this.#calls.setMembership(this.#socket, group, isMember))
    // A kernel without IPv6 may lack its group.
    return errors[0] === 0
  }

  /** Reads the reports that have come, and returns whether that is all. If too many have, the kernel has dropped some. */
  #readAll(): boolean {
    const buffer = this.#buffer
    for (let messages = 0; messages < MOST_MESSAGES && !this.#closed; messages += 1) {
      const length = this.#calls.receive(this.#socket, buffer)
      if (length <= 0) return true
      const report = reportIn(buffer.subarray(0, length))
      const watched = report === null ? undefined : this.#watched.get(report.key)
      if (report !== null && watched !== undefined) watched.read = report.read
    }
    return false
  }
}

const keyOf = (host: string, port: number, peerPort: number): string => `${host} ${port} ${peerPort}`

/** Returns whose end a message reports, and the bytes that were read there; null for others than those of loopback. */
function reportIn(message: Buffer): { key: string; read: number } | null {
  if (message.length < HEAD_BYTES) return null
  const host = loopbackAt(message.subarray(ADDRESS, ADDRESS + 16))
  const received = bytesReceived(message)
  if (host === null || received === null) return null
  const key = keyOf(host, message.readUInt16BE(PORT), message.readUInt16BE(PEER_PORT))
  return { key, read: received - message.readUInt32LE(UNREAD) }
}

const LOOPBACKS: Readonly<Record<string, LoopbackHost>> = {
  '7f000001000000000000000000000000': '127.0.0.1',
  // Of a socket of IPv6 that accepts IPv4 too.
  '00000000000000000000ffff7f000001': '127.0.0.1',
  '00000000000000000000000000000001': '::1',
}

const loopbackAt = (address: Buffer): LoopbackHost | null => LOOPBACKS[address.toString('hex')] ?? null

function bytesReceived(message: Buffer): number | null {
  for (let at = HEAD_BYTES; at + 4 <= message.length; ) {
    const length = message.readUInt16LE(at)
    if (length < 4) return null
    const value = message.subarray(at + 4, at + length)
    if (message.readUInt16LE(at + 2) === INFO && value.length >= BYTES_RECEIVED + 8) {
      return Number(value.readBigUInt64LE(BYTES_RECEIVED))
    }
    at += (length + 3) & ~3
  }
  return null
}
