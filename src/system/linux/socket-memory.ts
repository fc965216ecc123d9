import { ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/if-present.ts'
import { openLibc } from '../libc.ts'

/** The numbers of netlink(7), sock_diag(7), linux/unix_diag.h, linux/inet_diag.h and linux/sock_diag.h. */
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const IPPROTO_TCP = 6
const NETLINK_SOCK_DIAG = 4
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST_DUMP = 0x301
const ALL_STATES = 0xffff_ffff
const SHOW_PEER_QUEUE_MEMORY = 0x4 | 0x10 | 0x20
const ATTRIBUTE = { peer: 2, queue: 4, memory: 5 } as const
const SHOW_TCP_MEMORY = 0x40
const TCP_MEMORY = 7
/** Positions in the words of a socket's memory: what it has received, and what it has sent and nobody has read. */
const RECEIVED = 0
const WRITTEN = 2

/** Bytes of a netlink message's head. */
const HEAD_BYTES = 16

/** Bytes of `struct unix_diag_req` and of `struct inet_diag_req_v2`. */
const UNIX_REQUEST_BYTES = 24
const TCP_REQUEST_BYTES = 56

/** Bytes of `struct unix_diag_msg` and of `struct inet_diag_msg`, and where the inode is. */
const UNIX_MESSAGE = { bytes: 16, inode: 4 }
const TCP_MESSAGE = { bytes: 72, inode: 68 }

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

/** Bytes that a socket's data takes in the kernel, by `socket:[INODE]`, as links in /proc/PID/fd name it. */
export type SocketMemory = ReadonlyMap<string, number>

/** Measures what sockets of this process's network hold: data that nobody has read. */
export interface SocketMeter {
  /** Returns a bound of the bytes, for the cost of reading a few numbers. */
  most(): number
  /** Asks the kernel about each socket; empty if it does not answer. */
  measure(): SocketMemory
  /**
   * The same of the sockets whose data a cgroup does not count, or in part: all but Unix sockets. No cgroup counts what
   * netlink sockets receive, nor what waits in a socket's queue of errors, into which programs can have the kernel put all
   * that they send (SO_TIMESTAMPING of socket(7)).
   */
  measureUncounted(): SocketMemory
}

/** Loads the C library. Throws if there is none. */
export function loadSocketMeter(): SocketMeter {
  const libc = openLibc({
    socket: { args: ['int', 'int', 'int'], returns: 'int' },
    send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
    recv: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
  })
  const [mostWritten = 0, mostReceived = 0] = ['wmem_max', 'rmem_max'].map(
    (name) => 2 * (numbersIn(`/proc/sys/net/core/${name}`)[0] ?? 0),
  )
  const mostOfTcp = numbersIn('/proc/sys/net/ipv4/tcp_rmem')[2] ?? 0
  const mostOfOne = Math.max(DEFAULT_SENT, mostWritten, mostReceived, mostOfTcp)
  /** Has the kernel list sockets. Ends early if it does not know the kind. */
  const dump = (request: Uint8Array, read: (view: DataView) => boolean): void => {
    const socket = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    if (socket < 0) return
    try {
      libc.send(socket, ptr(request), request.length, 0)
      const bytes = new Uint8Array(RECEIVED_BYTES)
      for (;;) {
        const length = Number(libc.recv(socket, ptr(bytes), bytes.length, 0))
        if (length <= 0 || !read(new DataView(bytes.buffer, 0, length))) return
      }
    } finally {
      closeSync(socket)
    }
  }
  const measureUncounted = (): Map<string, number> => {
    const found = new Map([NETLINK_LIST, ...UDP_LISTS].flatMap((list) => [...readList(list)]))
    for (const family of [AF_INET, AF_INET6])
      dump(tcpRequest(family), (view) => readMessages(view, TCP_MESSAGE, receivedBytesOf, found))
    return found
  }
  return {
    most: () => (numbersIn('/proc/net/sockstat')[0] ?? 0) * mostOfOne,
    measureUncounted,
    measure() {
      const found = measureUncounted()
      dump(unixRequest(), (view) => readMessages(view, UNIX_MESSAGE, bytesOf, found))
      return found
    },
  }
}

/** Returns a request for all Unix sockets: `struct nlmsghdr` and `struct unix_diag_req`. */
function unixRequest(): Uint8Array {
  const { bytes, view } = request(UNIX_REQUEST_BYTES)
  view.setUint8(HEAD_BYTES, AF_UNIX)
  view.setUint32(HEAD_BYTES + 4, ALL_STATES, true)
  view.setUint32(HEAD_BYTES + 12, SHOW_PEER_QUEUE_MEMORY, true)
  return bytes
}

/** Returns a request for all TCP sockets of a family: `struct nlmsghdr` and `struct inet_diag_req_v2`. */
function tcpRequest(family: number): Uint8Array {
  const { bytes, view } = request(TCP_REQUEST_BYTES)
  view.setUint8(HEAD_BYTES, family)
  view.setUint8(HEAD_BYTES + 1, IPPROTO_TCP)
  view.setUint8(HEAD_BYTES + 2, SHOW_TCP_MEMORY)
  view.setUint32(HEAD_BYTES + 4, ALL_STATES, true)
  return bytes
}

function request(size: number): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(HEAD_BYTES + size)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, bytes.length, true)
  view.setUint16(4, SOCK_DIAG_BY_FAMILY, true)
  view.setUint16(6, NLM_F_REQUEST_DUMP, true)
  return { bytes, view }
}

/** Adds the sockets of a part of the answer. Returns false at its end, or for an error. */
function readMessages(
  view: DataView,
  message: { bytes: number; inode: number },
  measure: (view: DataView, start: number, end: number) => number,
  found: Map<string, number>,
): boolean {
  for (let at = 0; at + HEAD_BYTES <= view.byteLength; ) {
    const length = view.getUint32(at, true)
    if (view.getUint16(at + 4, true) !== SOCK_DIAG_BY_FAMILY || length < HEAD_BYTES) return false
    const inode = view.getUint32(at + HEAD_BYTES + message.inode, true)
    const bytes = measure(view, at + HEAD_BYTES + message.bytes, at + length)
    if (bytes > 0) found.set(`socket:[${inode}]`, bytes)
    at += (length + 3) & ~3
  }
  return true
}

/** Returns what a TCP socket has received, by its attributes from `start` to `end`. */
function receivedBytesOf(view: DataView, start: number, end: number): number {
  for (let at = start; at + 4 <= end; ) {
    const length = view.getUint16(at, true)
    if (view.getUint16(at + 2, true) === TCP_MEMORY) return view.getUint32(at + 4 + 4 * RECEIVED, true)
    at += Math.max(4, (length + 3) & ~3)
  }
  return 0
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

/** Returns the numbers in a file; none if it cannot be read. */
function numbersIn(path: string): number[] {
  return (readTextOrNull(path) ?? '').match(/\d+/g)?.map(Number) ?? []
}
