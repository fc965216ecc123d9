import { ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { ComputeError } from '../../sandbox.ts'
import { type ForwardTarget, forwardTo } from './forward.ts'
import type { RelayedSocket } from './outbound/messages.ts'
import { type AcceptAtPort, type AnsweringPorts, acceptWith, type ProjectPorts } from './project-ports.ts'
import { DNS_PORT, OUTBOUND_PORT, PROJECTS_PORT } from './rules.ts'
import {
  isIPv6,
  type NetworkHost,
  OWN_IPV4,
  OWN_IPV6,
  type SocketCalls,
  socketAddress,
  systemError,
} from './socket-calls.ts'
import { SocketSource, type SourceSockets } from './socket-source.ts'

const HOSTS = ['127.0.0.1', '::1'] as const

/** Something that berth has open in a server's network. */
interface NetworkListener {
  /** Closes it with its connections. May be called again. */
  stop(): void
}

/** The sockets that sandboxd makes in a server's own network, as open descriptors. */
export interface NetworkSockets {
  readonly v4: VersionSockets
  /** Null if the kernel has no IPv6. */
  readonly v6: VersionSockets | null
}

/** The sockets of one IP version: two of TCP by which others are made, and one of UDP. */
interface VersionSockets extends SourceSockets {
  readonly udp: number
}

/** What berth opens its own services in, inside a server's network. */
export interface ProvidedNetwork extends Pick<ServerNetwork, 'forward'> {
  /** See `ServerNetwork.acceptAtProjectPorts`. @param ports those at which a project answers now, for who cannot take a whole range */
  acceptAtProjectPorts(accept: AcceptAtPort, ports: AnsweringPorts): void
}

/**
 * A server's own network, as berth uses it from outside: it connects to the server's ports, and listens and answers
 * there. A socket belongs to the network that it was made in, so berth uses sockets that sandboxd made before the
 * first command. Nothing on the server has a copy of any.
 *
 * While a socket is open, the network stays. So `close` must be called when the sandbox has ended.
 */
export class ServerNetwork {
  readonly #calls: SocketCalls
  readonly #projectPorts: ProjectPorts
  readonly #sources: { v4: SocketSource; v6: SocketSource | null }
  /** The blank UDP sockets that nobody has taken. */
  readonly #udp: { v4: number | null; v6: number | null }
  readonly #listeners = new Set<NetworkListener>()
  readonly #forwarded = new Map<number, ForwardTarget>()
  #closed = false
  #unredirected: string | null = null

  /** Takes ownership of the sockets, which are blank. */
  constructor(calls: SocketCalls, projectPorts: ProjectPorts, { v4, v6 }: NetworkSockets) {
    this.#calls = calls
    this.#projectPorts = projectPorts
    this.#sources = {
      v4: new SocketSource(calls, '127.0.0.1', v4),
      v6: v6 === null ? null : new SocketSource(calls, '::1', v6),
    }
    this.#udp = { v4: v4.udp, v6: v6?.udp ?? null }
  }

  /** Returns its network namespace, as an open descriptor; null if the kernel refuses it. */
  namespace(): number | null {
    return this.#udp.v4 === null ? null : this.#calls.networkOf(this.#udp.v4)
  }

  /** Why nothing redirects what leaves the network, in a sentence; null if it is redirected. */
  get unredirected(): string | null {
    return this.#unredirected
  }

  /** Whether the kernel has IPv6. */
  get hasIPv6(): boolean {
    return this.#sources.v6 !== null
  }

  /**
   * Gives the network its address and a route.
   *
   * @param unredirected why nothing redirects what leaves the network, a sentence; null if it is redirected
   */
  configure(unredirected: string | null): void {
    const socket = this.#udp.v4
    if (socket === null) throw this.#nothingLeft('a socket to configure it by')
    const error =
      assignIPv4(this.#calls, socket) || (this.#udp.v6 === null ? 0 : assignIPv6(this.#calls, this.#udp.v6))
    if (error !== 0) throw systemError(error, "give the server's network an address")
    this.#unredirected = unredirected
  }

  /**
   * Connects to a port of the server. Rejects with an error whose `code` is `ECONNREFUSED` if nothing listens there;
   * then no handler is called.
   */
  async connect<Data>(
    port: number,
    host: '127.0.0.1' | '::1',
    { data, socket }: { data: Data; socket: Bun.SocketHandler<Data> },
  ): Promise<Bun.Socket<Data>> {
    const descriptor = this.#blank(host)
    const error = this.#calls.connect(descriptor, socketAddress(host, port))
    if (error !== 0) {
      closeSync(descriptor)
      throw systemError(error, `connect to ${host}, port ${port}`)
    }
    return Bun.connect({ fd: descriptor, data, socket })
  }

  /**
   * Ends a connection of `connect`, after what was written. Its socket may serve a later connection.
   *
   * @param host the one that was passed to `connect`
   */
  end(connection: Bun.Socket<unknown>, host: '127.0.0.1' | '::1'): void {
    const source = isIPv6(host) ? this.#sources.v6 : this.#sources.v4
    if (this.#closed || source === null) connection.end()
    else source.takeBack(connection.fd, () => connection.end())
  }

  /**
   * Accepts connections to a port inside, until the network is closed. What connects is a program of this server:
   * nothing else can reach the port. Throws an error with `code` `EADDRINUSE` if the port is taken.
   */
  listen<Data>(port: number, host: NetworkHost, socket: Bun.SocketHandler<Data>): NetworkListener {
    const listener = Bun.listen({ fd: this.#listeningDescriptor(port, host), socket })
    return this.#keep({ stop: () => listener.stop(true) })
  }

  /**
   * Passes on the connections of programs to ports of projects on which no program of the server listens, if the
   * system hands them over. Must be called once at most.
   */
  acceptAtProjectPorts(accept: AcceptAtPort): void {
    if (this.#projectPorts.range === null || !this.#sources.v4.isMarked) return
    const handlers = acceptWith(accept)
    for (const host of this.hasIPv6 ? HOSTS : HOSTS.slice(0, 1)) this.listen(PROJECTS_PORT, host, handlers)
  }

  /**
   * Returns the sockets at which everything arrives that leaves the network, and what programs ask of its name server
   * or of services of this machine. They are the caller's to close.
   *
   * @param machinePorts ports of this machine's loopback that are reached at the same port inside
   */
  outboundSockets(machinePorts: readonly number[]): RelayedSocket[] {
    const hosts = this.hasIPv6 ? HOSTS : HOSTS.slice(0, 1)
    const sockets: RelayedSocket[] = []
    try {
      for (const host of hosts) {
        sockets.push({ fd: this.#listeningDescriptor(OUTBOUND_PORT, host), purpose: 'outbound' })
        for (const port of machinePorts) {
          sockets.push({ fd: this.#listeningDescriptor(port, host), purpose: 'machine', port })
        }
        // Queries that are not redirected arrive at the address that they were sent to.
        const asked = host === '127.0.0.1' && this.#unredirected !== null ? OWN_IPV4 : host
        sockets.push({ fd: this.#udpDescriptor(DNS_PORT, asked), purpose: 'dns' })
      }
      return sockets
    } catch (error) {
      for (const { fd } of sockets) closeSync(fd)
      throw error
    }
  }

  /**
   * Returns a listening TCP socket as a descriptor. Throws an error with `code` `EADDRINUSE` if the port is taken.
   */
  #listeningDescriptor(port: number, host: NetworkHost): number {
    const descriptor = this.#blank(host)
    const address = socketAddress(host, port)
    const error =
      (port === PROJECTS_PORT && this.#calls.allowTransparent(descriptor, address)) ||
      this.#calls.bind(descriptor, address) ||
      this.#calls.listen(descriptor)
    if (error === 0) return descriptor
    closeSync(descriptor)
    throw systemError(error, `listen on ${host}, port ${port}`)
  }

  /**
   * Makes something that berth offers reachable at a port of the server's loopback, 127.0.0.1 and ::1. Does nothing if
   * it is already. Throws an error with `code` `EADDRINUSE` if the port is taken.
   */
  forward(port: number, target: ForwardTarget): void {
    if (this.#forwarded.has(port)) return
    for (const host of this.hasIPv6 ? HOSTS : HOSTS.slice(0, 1)) this.listen(port, host, forwardTo(target))
    this.#forwarded.set(port, target)
  }

  /** The unix sockets of berth to which `forward` leads, by port. */
  get socketsOfBerth(): Readonly<Record<number, string>> {
    const all = [...this.#forwarded].flatMap(([port, target]) =>
      'unix' in target ? [[port, target.unix]] : [],
    )
    return Object.fromEntries(all)
  }

  /**
   * Returns a bound UDP socket as a descriptor. There is one for each IP version.
   */
  #udpDescriptor(port: number, host: NetworkHost): number {
    const version = isIPv6(host) ? 'v6' : 'v4'
    const descriptor = this.#closed ? null : this.#udp[version]
    if (descriptor === null) throw this.#nothingLeft(`a UDP socket of IP${version}`)
    this.#udp[version] = null
    const error = this.#calls.bind(descriptor, socketAddress(host, port))
    if (error === 0) return descriptor
    closeSync(descriptor)
    throw systemError(error, `receive datagrams on ${host}, port ${port}`)
  }

  /** Closes every socket but those of open connections, which end with the programs at their other end. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const listener of this.#listeners) listener.stop()
    this.#listeners.clear()
    this.#sources.v4.close()
    this.#sources.v6?.close()
    for (const version of ['v4', 'v6'] as const) {
      const descriptor = this.#udp[version]
      // Its number is soon that of something else.
      this.#udp[version] = null
      if (descriptor !== null) closeSync(descriptor)
    }
  }

  #blank(host: NetworkHost): number {
    const source = isIPv6(host) ? this.#sources.v6 : this.#sources.v4
    if (this.#closed || source === null) throw this.#nothingLeft(`a socket for ${host}`)
    return source.make()
  }

  #nothingLeft(what: string): ComputeError {
    return new ComputeError(
      this.#closed
        ? 'The server is not running any more; start it again.'
        : `The server's network lacks ${what}.`,
    )
  }

  #keep(listener: NetworkListener): NetworkListener {
    let stopped = false
    const kept = {
      stop: () => {
        if (stopped) return
        stopped = true
        this.#listeners.delete(kept)
        listener.stop()
      },
    }
    this.#listeners.add(kept)
    return kept
  }
}

/** Requests of netdevice(7) and rtnetlink's older way; the structures are those of 64-bit systems. */
const SIOCADDRT = 0x890b
const SIOCSIFADDR = 0x8916
const SIOCSIFNETMASK = 0x891c
const RTF_UP = 1
const AF_INET = 2
/** The loopback interface is the first of every network. */
const LOOPBACK_INDEX = 1

/**
 * Gives a network the address `OWN_IPV4` and a default route, both on its loopback interface: what goes there is
 * redirected, or refused at once. The kernel asks whether the caller may do this, not who made the socket, and the
 * user who has started a sandbox may do everything in its network.
 *
 * @param fd a socket of the network, of IPv4
 * @returns the number of the first error, 0 for none
 */
function assignIPv4(calls: SocketCalls, fd: number): number {
  const request = new Uint8Array(40)
  request.set(Buffer.from('lo:1'))
  const set = (bytes: number[]): Uint8Array => {
    new DataView(request.buffer).setUint16(16, AF_INET, true)
    request.set(bytes, 20)
    return request
  }
  const name = Buffer.from('lo\0')
  const route = new Uint8Array(120)
  const view = new DataView(route.buffer)
  for (const at of [8, 24, 40]) view.setUint16(at, AF_INET, true)
  view.setUint16(56, RTF_UP, true)
  view.setBigUint64(88, BigInt(ptr(name)), true)
  return (
    calls.control(fd, SIOCSIFADDR, set(OWN_IPV4.split('.').map(Number))) ||
    calls.control(fd, SIOCSIFNETMASK, set([255, 255, 255, 255])) ||
    calls.control(fd, SIOCADDRT, route)
  )
}

/**
 * Does what the function above does, with `OWN_IPV6`.
 *
 * @param fd a socket of the network, of IPv6
 */
function assignIPv6(calls: SocketCalls, fd: number): number {
  const request = new Uint8Array(24)
  request.set(ipaddr.parse(OWN_IPV6).toByteArray())
  const address = new DataView(request.buffer)
  address.setUint32(16, 128, true)
  address.setInt32(20, LOOPBACK_INDEX, true)
  const route = new Uint8Array(80)
  const view = new DataView(route.buffer)
  view.setUint32(56, 1, true)
  view.setUint32(72, RTF_UP, true)
  view.setInt32(76, LOOPBACK_INDEX, true)
  return calls.control(fd, SIOCSIFADDR, request) || calls.control(fd, SIOCADDRT, route)
}
