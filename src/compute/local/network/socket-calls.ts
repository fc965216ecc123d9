import { ptr, read } from 'bun:ffi'
import { closeSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { openLibc } from '../../../system/libc.ts'

/** The numbers of socket(7), ip(7) and ipv6(7), the same on x86-64 and arm64. */
const AF_UNSPEC = 0
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const MSG_DONTWAIT = 0x40
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_TYPE = 3
const SO_ERROR = 4
const SO_LINGER = 13
const SO_ACCEPTCONN = 30
const SO_PROTOCOL = 38
const SO_DOMAIN = 39
const SO_NETNS_COOKIE = 71
const SO_MARK = 36
const IPPROTO_IP = 0
const IP_TRANSPARENT = 19
const IPPROTO_TCP = 6
const TCP_INFO = 11
const TCP_CLOSE = 7
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const IPV6_TRANSPARENT = 75
/** Requests of ioctl_ns(2) and of sockets for their network namespace. */
const NS_GET_USERNS = 0xb701
const SIOCGSKNS = 0x894c
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000
const SHUT_RDWR = 2
const FIONREAD = 0x541b
const F_SETFL = 4
const F_DUPFD_CLOEXEC = 1030

/** Errors of connect(2) that are none: it goes on, or went through. */
const EINPROGRESS = 115

/** Connections that wait to be accepted, at most; the kernel cuts it to net.core.somaxconn. */
const BACKLOG = 512

/** What a socket is, as the kernel tells it. */
export interface SocketFacts {
  readonly domain: number
  readonly type: number
  readonly protocol: number
  readonly listens: boolean
  readonly connected: boolean
  /** Identifies its network namespace; 0 if the kernel does not tell (before Linux 5.14). */
  readonly network: bigint
}

/** The descriptors of two connected sockets. */
export interface SocketPair {
  readonly ours: number
  readonly theirs: number
}

/** The system calls for sockets whose number is known, which Bun has no functions for. None of them blocks. */
export interface SocketCalls {
  /** Makes a TCP socket for connections to an address. @returns its descriptor; a negative number if there is none to be had */
  open(address: string): number
  /** Begins to connect a socket. @returns the error's number; 0 if it is connected or on its way */
  connect(fd: number, address: Uint8Array): number
  /** Makes a connected or refused TCP socket a blank one again. */
  disconnect(fd: number): void
  /** Gives a socket an address and, if it is a TCP socket, has it accept connections. @returns the error's number, 0 for none */
  bind(fd: number, address: Uint8Array): number
  listen(fd: number): number
  /** Lets a socket take connections to other ports, which nft's `tproxy` hands it. @returns the error's number, 0 for none */
  allowTransparent(fd: number, address: Uint8Array): number
  /** Marks what a socket sends, and the sockets that it accepts. @returns the error's number, 0 for none */
  mark(fd: number, mark: number): number
  /** Accepts a connection. @returns its socket; a negative number if none waits */
  accept(fd: number): number
  /** Returns a second descriptor of a socket; -1 if there is none to be had. */
  duplicate(fd: number): number
  /** Ends what a TCP socket sends, and has the kernel reset it if its peer sends more. */
  shutdown(fd: number): void
  /** Reports whether bytes have arrived at a TCP socket that nobody has read. */
  hasUnread(fd: number): boolean
  /** Reports whether a TCP socket has no connection: none yet, or both sides have ended it. */
  isUnconnected(fd: number): boolean
  /** Returns and clears a socket's pending error; 0 for none. */
  takeError(fd: number): number
  facts(fd: number): SocketFacts
  /** Has no call wait for a socket that another process has made, not even its close (SO_LINGER of socket(7)). */
  neverWait(fd: number): void
  /**
   * Sends a message to the kernel over a netlink socket. It names the kernel as the destination, so the kernel asks for
   * the rights of the caller only, and not of the socket's maker too. @returns whether it was sent
   */
  sendToKernel(fd: number, bytes: Uint8Array): boolean
  /** Receives a message without waiting. @returns its length; a negative number if there is none */
  receive(fd: number, buffer: Uint8Array): number
  /** Makes two sockets that are connected with each other. @throws Error if the process may open no more */
  pair(): SocketPair
  /** Returns the `network` of new sockets of this process. */
  network(): bigint
  /** Calls ioctl(2) with a structure. @returns the error's number, 0 for none */
  control(fd: number, request: number, structure: Uint8Array): number
  /** Returns the network namespace of a socket, as an open descriptor; null if the kernel refuses it. */
  networkOf(socket: number): number | null
  /** Returns the user namespace that owns a namespace, as an open descriptor; null if the kernel refuses it. */
  ownerOf(namespace: number): number | null
}

/** Loads the C library; about 0.3 ms. Throws if there is none. */
export function loadSocketCalls(): SocketCalls {
  const calls = openLibc({
    socket: { args: ['int', 'int', 'int'], returns: 'int' },
    socketpair: { args: ['int', 'int', 'int', 'ptr'], returns: 'int' },
    connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
    bind: { args: ['int', 'ptr', 'u32'], returns: 'int' },
    listen: { args: ['int', 'int'], returns: 'int' },
    accept4: { args: ['int', 'ptr', 'ptr', 'int'], returns: 'int' },
    getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
    setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
    sendto: { args: ['int', 'ptr', 'u64', 'int', 'ptr', 'u32'], returns: 'i64' },
    recv: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
    getpeername: { args: ['int', 'ptr', 'ptr'], returns: 'int' },
    ioctl: { args: ['int', 'u64', 'ptr'], returns: 'int' },
    fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
    shutdown: { args: ['int', 'int'], returns: 'int' },
    __errno_location: { args: [], returns: 'ptr' },
  })
  const value = new BigUint64Array(1)
  const word = new Int32Array(value.buffer)
  const length = new Uint32Array(1)
  const peer = new Uint8Array(128)
  const nowhere = new Uint8Array(16)
  nowhere[0] = AF_UNSPEC
  // `struct sockaddr_nl` with the port id of the kernel, 0.
  const kernel = new Uint8Array(12)
  kernel[0] = AF_NETLINK
  const one = new Int32Array([1])
  const nothing = new Int32Array(2)
  const errorOf = (result: number): number => {
    if (result === 0) return 0
    const place = calls.__errno_location()
    return place === null ? -1 : read.i32(place, 0)
  }
  const option = (fd: number, name: number, bytes: 4 | 8 = 4): boolean => {
    value[0] = 0n
    length[0] = bytes
    return calls.getsockopt(fd, SOL_SOCKET, name, ptr(value), ptr(length)) === 0
  }
  const number = (fd: number, name: number): number => (option(fd, name) ? (word[0] ?? -1) : -1)
  const tcpState = (fd: number): number => {
    length[0] = 8
    // The first byte of `struct tcp_info`.
    const error = calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, ptr(value), ptr(length))
    return error === 0 ? (word[0] ?? 0) & 0xff : -1
  }
  return {
    open: (address) =>
      calls.socket(isIPv6(address) ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
    connect(fd, address) {
      const error = errorOf(calls.connect(fd, ptr(address), address.length))
      return error === EINPROGRESS ? number(fd, SO_ERROR) : error
    },
    disconnect(fd) {
      calls.connect(fd, ptr(nowhere), nowhere.length)
      number(fd, SO_ERROR)
    },
    bind(fd, address) {
      calls.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, ptr(one), 4)
      // A listener of IPv6 leaves the port of IPv4 to another.
      if (address[0] === AF_INET6) calls.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, ptr(one), 4)
      return errorOf(calls.bind(fd, ptr(address), address.length))
    },
    listen: (fd) => errorOf(calls.listen(fd, BACKLOG)),
    allowTransparent(fd, { length }) {
      const isIPv4 = length === 16
      const [level, option] = isIPv4 ? [IPPROTO_IP, IP_TRANSPARENT] : [IPPROTO_IPV6, IPV6_TRANSPARENT]
      return errorOf(calls.setsockopt(fd, level, option, ptr(one), 4))
    },
    mark: (fd, mark) => errorOf(calls.setsockopt(fd, SOL_SOCKET, SO_MARK, ptr(new Int32Array([mark])), 4)),
    accept: (fd) => calls.accept4(fd, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC),
    duplicate: (fd) => calls.fcntl(fd, F_DUPFD_CLOEXEC, 0),
    shutdown: (fd) => void calls.shutdown(fd, SHUT_RDWR),
    hasUnread: (fd) => calls.ioctl(fd, FIONREAD, ptr(word)) === 0 && (word[0] ?? 0) > 0,
    isUnconnected: (fd) => tcpState(fd) === TCP_CLOSE,
    takeError: (fd) => number(fd, SO_ERROR),
    facts(fd) {
      length[0] = peer.length
      const connected = calls.getpeername(fd, ptr(peer), ptr(length)) === 0
      const [domain, type, protocol] = [SO_DOMAIN, SO_TYPE, SO_PROTOCOL].map((name) => number(fd, name))
      const listens = number(fd, SO_ACCEPTCONN) === 1
      const network = option(fd, SO_NETNS_COOKIE, 8) ? (value[0] ?? 0n) : 0n
      return { domain: domain ?? -1, type: type ?? -1, protocol: protocol ?? -1, listens, connected, network }
    },
    neverWait(fd) {
      calls.fcntl(fd, F_SETFL, SOCK_NONBLOCK)
      calls.setsockopt(fd, SOL_SOCKET, SO_LINGER, ptr(nothing), 8)
    },
    sendToKernel: (fd, bytes) =>
      Number(calls.sendto(fd, ptr(bytes), bytes.length, MSG_DONTWAIT, ptr(kernel), kernel.length)) ===
      bytes.length,
    receive: (fd, buffer) => Number(calls.recv(fd, ptr(buffer), buffer.length, MSG_DONTWAIT)),
    pair() {
      const pair = new Int32Array(2)
      const error = errorOf(calls.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ptr(pair)))
      if (error !== 0) throw new Error(`socketpair failed with error ${error}`)
      const [ours = -1, theirs = -1] = pair
      return { ours, theirs }
    },
    network() {
      const fd = calls.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
      if (fd < 0) return 0n
      const cookie = option(fd, SO_NETNS_COOKIE, 8) ? (value[0] ?? 0n) : 0n
      closeSync(fd)
      return cookie
    },
    networkOf(socket) {
      const network = calls.ioctl(socket, SIOCGSKNS, null)
      return network < 0 ? null : network
    },
    ownerOf(namespace) {
      const owner = calls.ioctl(namespace, NS_GET_USERNS, null)
      return owner < 0 ? null : owner
    },
    control: (fd, request, structure) => errorOf(calls.ioctl(fd, request, ptr(structure))),
  }
}

/**
 * A server's addresses besides loopback: the dummy address of IPv4 (RFC 7600), and one of the range of IPv6 that is
 * thrown away (RFC 6666), so no other machine is meant by them. Without an address of global scope connections to the
 * outside would have the source 0.0.0.0, and hang.
 */
export const OWN_IPV4 = '192.0.0.8'
export const OWN_IPV6 = '100::8'

/** The addresses that berth uses inside a server's network. */
export type NetworkHost = '127.0.0.1' | '::1' | typeof OWN_IPV4

/** Returns whether an address is one of IPv6. */
export const isIPv6 = (host: string): boolean => host.includes(':')

/** Returns an address as `struct sockaddr_in` or `struct sockaddr_in6`. */
export function socketAddress(host: string, port: number): Uint8Array {
  const bytes = new Uint8Array(isIPv6(host) ? 28 : 16)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, isIPv6(host) ? AF_INET6 : AF_INET, true)
  view.setUint16(2, port)
  bytes.set(ipaddr.parse(host).toByteArray(), isIPv6(host) ? 8 : 4)
  return bytes
}

/** Errors by their numbers, of errno(3). */
const CODES: Readonly<Record<number, string>> = {
  1: 'EPERM',
  13: 'EACCES',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
  101: 'ENETUNREACH',
  110: 'ETIMEDOUT',
  111: 'ECONNREFUSED',
  113: 'EHOSTUNREACH',
}

/** Returns an error's code by its number, such as `EACCES`. */
export const systemErrorCode = (number: number): string => CODES[number] ?? `E${number}`

/** Returns an error of the system with its `code`. @param what what failed, such as `listen on ::1, port 80` */
export function systemError(number: number, what: string): Error {
  const code = systemErrorCode(number)
  return Object.assign(new Error(`${code}: cannot ${what}`), { code })
}
