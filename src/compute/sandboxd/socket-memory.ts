import { ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/read-text.ts'
import { openLibc } from './libc.ts'

/** The numbers of netlink(7), sock_diag(7), linux/unix_diag.h and linux/sock_diag.h. */
const AF_UNIX = 1
const AF_NETLINK = 16
const NETLINK_SOCK_DIAG = 4
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST_DUMP = 0x301
const ALL_STATES = 0xffff_ffff
const SHOW_PEER_QUEUE_MEMORY = 0x4 | 0x10 | 0x20
const ATTRIBUTE = { peer: 2, queue: 4, memory: 5 } as const
/** Position of the bytes of sent messages that nobody has read, in the words of `memory`. */
const WRITTEN = 2

/** Bytes of a netlink message's head, of a request and of `struct unix_diag_msg`. */
const HEAD_BYTES = 16
const REQUEST_BYTES = HEAD_BYTES + 24
const MESSAGE_BYTES = 16

const RECEIVED_BYTES = 64 * 1024

/** The kernel's memory for a message of one byte, and for all messages of one sender by default and at most. */
const SMALLEST_MESSAGE = 768
const DEFAULT_SENT = 425_984

/** What /proc/net shows of datagrams that nobody has read: the file, and in which columns the bytes and the inode are. */
const NETLINK_LIST = { path: '/proc/net/netlink', read: (text = '') => Number(text), bytes: 4, inode: 9 }
const UDP_LISTS = ['udp', 'udp6', 'udplite', 'udplite6'].map((name) => ({
  path: `/proc/net/${name}`,
  // Sent and received bytes, hexadecimal.
  read: (text = '') => Number.parseInt(text.split(':')[1] ?? '', 16),
  bytes: 4,
  inode: 9,
}))

/** Bytes of a page of memory at most. */
const PAGE_BYTES = 65_536

/** Bytes that a socket's data takes in the kernel, by `socket:[INODE]`, as links in /proc/PID/fd name it. */
export type SocketMemory = ReadonlyMap<string, number>

/** Measures what Unix, UDP and netlink sockets of this process's network hold: data that nobody has read. */
export interface SocketMeter {
  /** Returns a bound of the bytes, for the cost of reading two files. */
  most(): number
  /** Asks the kernel about each socket; empty if it does not answer. */
  measure(): SocketMemory
  /** The same of netlink sockets alone, whose data no cgroup counts. */
  measureNetlink(): SocketMemory
}

/** Loads the C library. Throws if there is none. */
export function loadSocketMeter(): SocketMeter {
  const libc = openLibc({
    socket: { args: ['int', 'int', 'int'], returns: 'int' },
    send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
    recv: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
  })
  const mostSent = Math.max(DEFAULT_SENT, 2 * (numberIn('/proc/sys/net/core/wmem_max') ?? 0))
  return {
    most() {
      const counts = readTextOrNull('/proc/net/sockstat') ?? ''
      const sockets = Number(/\d+/.exec(counts)?.[0] ?? 0)
      // Of the whole machine.
      const udpPages = Number(/^UDP:.* mem (\d+)/m.exec(counts)?.[1] ?? 0)
      return sockets * mostSent + udpPages * PAGE_BYTES + sumOf(readList(NETLINK_LIST))
    },
    measureNetlink: () => readList(NETLINK_LIST),
    measure() {
      const found = new Map([NETLINK_LIST, ...UDP_LISTS].flatMap((list) => [...readList(list)]))
      const socket = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
      if (socket < 0) return found
      try {
        const request = dumpRequest()
        libc.send(socket, ptr(request), request.length, 0)
        const bytes = new Uint8Array(RECEIVED_BYTES)
        for (;;) {
          const length = Number(libc.recv(socket, ptr(bytes), bytes.length, 0))
          if (length <= 0 || !readMessages(new DataView(bytes.buffer, 0, length), found)) return found
        }
      } finally {
        closeSync(socket)
      }
    },
  }
}

/** Returns a request for all Unix sockets: `struct nlmsghdr` and `struct unix_diag_req`. */
function dumpRequest(): Uint8Array {
  const bytes = new Uint8Array(REQUEST_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, REQUEST_BYTES, true)
  view.setUint16(4, SOCK_DIAG_BY_FAMILY, true)
  view.setUint16(6, NLM_F_REQUEST_DUMP, true)
  view.setUint8(HEAD_BYTES, AF_UNIX)
  view.setUint32(HEAD_BYTES + 4, ALL_STATES, true)
  view.setUint32(HEAD_BYTES + 12, SHOW_PEER_QUEUE_MEMORY, true)
  return bytes
}

/** Adds the sockets of a part of the answer. Returns false at its end, or for an error. */
function readMessages(view: DataView, found: Map<string, number>): boolean {
  for (let at = 0; at + HEAD_BYTES <= view.byteLength; ) {
    const length = view.getUint32(at, true)
    if (view.getUint16(at + 4, true) !== SOCK_DIAG_BY_FAMILY || length < HEAD_BYTES) return false
    const inode = view.getUint32(at + HEAD_BYTES + 4, true)
    const bytes = bytesOf(view, at + HEAD_BYTES + MESSAGE_BYTES, at + length)
    if (bytes > 0) found.set(`socket:[${inode}]`, bytes)
    at += (length + 3) & ~3
  }
  return true
}

/** Returns the bytes of one socket, by its attributes from `start` to `end`. */
function bytesOf(view: DataView, start: number, end: number): number {
  let peer = 0
  let queued = 0
  let written = 0
  for (let at = start; at + 4 <= end; ) {
    const length = view.getUint16(at, true)
    const type = view.getUint16(at + 2, true)
    if (type === ATTRIBUTE.peer) peer = view.getUint32(at + 4, true)
    else if (type === ATTRIBUTE.queue) queued = view.getUint32(at + 4, true)
    else if (type === ATTRIBUTE.memory) written = view.getUint32(at + 4 + 4 * WRITTEN, true)
    at += Math.max(4, (length + 3) & ~3)
  }
  // The sender accounts for what it has sent; once it is closed, only the length of the data is known.
  return written + (peer === 0 ? Math.min(queued * SMALLEST_MESSAGE, Math.max(2 * queued, DEFAULT_SENT)) : 0)
}

/** Returns the sockets of a list in /proc/net that hold data. */
function readList({ path, read, bytes, inode }: typeof NETLINK_LIST): Map<string, number> {
  const [, ...lines] = (readTextOrNull(path) ?? '').trimEnd().split('\n')
  const sockets = lines.map((line) => line.trim().split(/\s+/))
  return new Map(
    sockets
      .map((columns): [string, number] => [`socket:[${columns[inode]}]`, read(columns[bytes])])
      .filter(([, size]) => size > 0),
  )
}

const sumOf = (memory: SocketMemory): number => [...memory.values()].reduce((total, one) => total + one, 0)

/** Returns the first number in a file; null if it cannot be read. */
function numberIn(path: string): number | null {
  const text = readTextOrNull(path)
  return text === null ? null : Number(/\d+/.exec(text)?.[0] ?? Number.NaN)
}
