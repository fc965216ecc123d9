import { NameResolver } from '../../../../runtime/name-resolver.ts'
import { once } from '../../../../runtime/once.ts'
import { OncePerPeriod } from '../../../../runtime/once-per-period.ts'
import { interfaceAddressesReader } from '../../../../system/interface-addresses.ts'
import { processes } from '../../../../system/processes.ts'
import type { NetworkFault, OutboundSettings, RefusedDestination } from '../../../sandbox.ts'
import { type AcceptedConnection, KEEP_ALIVE_MS } from '../project-ports.ts'
import { ClosingResponse } from './closing-response.ts'
import { explainConnectFailure, explainLookUpFailure, loadConnectCalls } from './connect-failure.ts'
import { Disturbance } from './disturbance.ts'
import { readQuestion } from './dns-message.ts'
import type { RelayedSocket } from './messages.ts'
import { framed, NameServer } from './name-server.ts'
import type { OriginalDestination } from './original-destination.ts'
import { isLoopbackName, type OutboundDestination, OutboundPolicy, type OutboundRefusal } from './policy.ts'
import { headEnd, PROXY_HEAD_LIMIT, proxyResponse, readProxyRequest } from './proxy-request.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { OutboundTunnel, type TunnelSocket, WaitingBytes } from './tunnel.ts'

const DNS_PORT = 53

/** Milliseconds in which a destination is reported as refused once, and the destinations that are reported in them. */
const REPORT_PERIOD_MS = 100
/** @bound reader */
const MOST_REPORTED = 20

/** Milliseconds after which the next address of a host is tried beside the one before. */
const ATTEMPT_MS = 250

/** Queries of one server that are answered at a time. @bound program */
const MOST_QUERIES = 500

/** Connections of all servers, if the limit of this process's descriptors cannot be read. */
const DEFAULT_CONNECTIONS = 1_000

/** Share of the process's descriptors that connections may take; each takes two. */
const DESCRIPTOR_SHARE = 0.5

/** Connections that one server may have; and a server leaves most of the room to the others. */
const SERVER_CONNECTIONS = 2_000
const SERVER_SHARE = 0.25

/** What relayed servers share. */
export class RelayCommons {
  readonly originalDestination: OriginalDestination
  readonly resolver = new NameResolver()
  readonly connectCalls = once(loadConnectCalls)
  readonly ownAddresses = interfaceAddressesReader()
  /** Connections that one server may have. */
  readonly mostConnections: number
  readonly #most: number
  #connections = 0

  /** @param originalDestination returns null for each connection if nothing is redirected */
  constructor(originalDestination: OriginalDestination = () => null) {
    const limit = processes.maxOpenFiles()
    this.originalDestination = originalDestination
    // What else berth has open needs descriptors, too.
    this.#most = limit === null ? DEFAULT_CONNECTIONS : Math.floor((limit * DESCRIPTOR_SHARE) / 2)
    this.mostConnections = Math.min(SERVER_CONNECTIONS, Math.ceil(this.#most * SERVER_SHARE))
  }

  /** Takes the room of one connection, and returns a function that gives it back; null if there is none. */
  readonly admit = (): (() => void) | null => {
    if (this.#connections >= this.#most) return null
    this.#connections += 1
    return () => {
      this.#connections -= 1
    }
  }
}

/** What leaves one server: connections, requests to the proxy and look-ups of names. */
export class RelayedServer {
  readonly #commons: RelayCommons
  readonly #serverId: string
  readonly #socketsOfBerth: Readonly<Record<number, string>>
  readonly #report: (refused: RefusedDestination) => void
  readonly #names: NameServer
  readonly #connections = new Set<OutboundConnection>()
  readonly #waiting = new WaitingBytes()
  readonly #stops: (() => void)[] = []
  readonly #reports = new OncePerPeriod(REPORT_PERIOD_MS, MOST_REPORTED)
  #policy: OutboundPolicy
  #disturbance: Disturbance | null = null
  /** Queries under way. */
  #answering = 0
  /** Rooms of connections that are taken. */
  #rooms = 0

  constructor(
    commons: RelayCommons,
    serverId: string,
    settings: OutboundSettings,
    socketsOfBerth: Readonly<Record<number, string>>,
    report: (refused: RefusedDestination) => void,
  ) {
    this.#commons = commons
    this.#serverId = serverId
    this.#socketsOfBerth = socketsOfBerth
    this.#policy = new OutboundPolicy(settings, serverId, commons.ownAddresses)
    this.#report = report
    this.#names = new NameServer(
      { refusal: (name) => this.#dnsRefusal(name) },
      commons.resolver,
      commons.admit,
    )
  }

  /** Begins to take what arrives at a socket. Throws if the descriptor is no such socket. */
  async open({ fd, purpose, port = 0 }: RelayedSocket): Promise<void> {
    if (purpose === 'dns') return this.#openNameServer(fd)
    const listener = Bun.listen<OutboundConnection>({
      fd,
      allowHalfOpen: true,
      socket: {
        open: (socket) => {
          const connection = this.#begin(socket)
          if (connection === null) return
          socket.data = connection
          socket.setNoDelay(true)
          socket.setKeepAlive(true, KEEP_ALIVE_MS)
          if (purpose === 'machine') this.#toMachine(connection, port)
          else this.#accept(connection, socket.fd)
        },
        data: ({ data }, bytes) => receive(data, bytes),
        end: ({ data }) => receive(data, null),
        drain: (socket) => socket.data?.tunnel.drain(),
        close: (socket, error) => socket.data?.tunnel.insideClosed(error !== undefined),
        error: (socket) => socket.data?.tunnel.cut(),
      },
    })
    this.#stops.push(() => listener.stop())
  }

  /** Serves a connection of a program as an HTTP proxy. Returns null, and it is reset, if the server has too many. */
  proxy(socket: TunnelSocket): AcceptedConnection | null {
    const connection = this.#begin(socket)
    if (connection === null) return null
    this.#serveProxy(connection)
    return {
      data: (bytes) => receive(connection, bytes),
      ended: () => receive(connection, null),
      drain: () => connection.tunnel.drain(),
      closed: (failed) => connection.tunnel.insideClosed(failed),
    }
  }

  /** Changes what the server may reach. Cuts the connections that it no longer may have. */
  apply(settings: OutboundSettings): void {
    this.#policy = new OutboundPolicy(settings, this.#serverId, this.#commons.ownAddresses)
    this.#reports.reset()
    for (const { destination, tunnel } of [...this.#connections]) {
      if (destination !== null && this.#policy.judge(destination) !== null) tunnel.cut()
    }
  }

  /** Reports destinations again that have just been reported. */
  renewReports(): void {
    this.#reports.reset()
  }

  /** Begins a fault, or ends it. */
  disturb(fault: NetworkFault | null): void {
    this.#disturbance = fault === null ? null : new Disturbance(fault)
    for (const { destination, tunnel } of [...this.#connections]) {
      if (destination === null) continue
      const disturbance = this.#disturbanceOf(destination)
      if (disturbance?.blocks) tunnel.cut()
      else tunnel.disturbance = disturbance
    }
  }

  /** Ends everything, and closes the descriptors. */
  close(): void {
    for (const stop of this.#stops.splice(0)) stop()
    for (const { tunnel } of [...this.#connections]) tunnel.cut()
  }

  async #openNameServer(fd: number): Promise<void> {
    const socket = await Bun.udpSocket({
      fd,
      socket: {
        data: (from, query, port, address) => {
          void this.#answer(query, false).then((answer) => {
            try {
              if (answer !== null) from.send(answer, port, address)
            } catch {
              // The program that asked is gone.
            }
          })
        },
        error: () => {},
      },
    })
    this.#stops.push(() => socket.close())
  }

  #accept(connection: OutboundConnection, fd: number): void {
    const original = this.#commons.originalDestination(fd)
    // Nothing redirects loopback, so that a connection to it is one to the proxy.
    if (original === null || /^(?:127\.|::1$)/.test(original.address)) this.#serveProxy(connection)
    else if (original.port === DNS_PORT) serveDns(connection, (query) => this.#answer(query, true))
    else this.#connect(connection, this.#redirectedTo(original), null)
  }

  #serveProxy(connection: OutboundConnection): void {
    serveProxy(connection, {
      lookUp: (host, port) => this.#lookUpHost(host, port),
      connect: (destinations, head) => this.#connect(connection, destinations, { head }),
    })
  }

  /**
   * Returns the destinations of a redirected connection. The program sees its connection open before berth's is, so it
   * would never turn to IPv4 if the host's IPv6 address is dead. berth does instead, if the address is that of one name
   * only: others may be other hosts.
   */
  #redirectedTo({ address, port }: { address: string; port: number }): OutboundDestination[] {
    const names = this.#names.namesOf(address)
    const first = { address, port, names }
    const [name] = names
    if (!address.includes(':') || name === undefined || names.length > 1) return [first]
    const others = this.#names.ipv4Of(name).map((ipv4) => ({ address: ipv4, port, names: [name] }))
    // If one is refused, that is reported only of the address that the program asked for.
    return [first, ...others].filter((one) => one === first || this.#policy.judge(one) === null)
  }

  /** Hands a service of this machine into the server. */
  #toMachine({ tunnel }: OutboundConnection, port: number): void {
    void tunnel.dial({ hostname: '127.0.0.1', port }, () => void tunnel.dial({ hostname: '::1', port }))
  }

  #begin(socket: TunnelSocket): OutboundConnection | null {
    const release = this.#takeRoom()
    if (release === null) {
      socket.terminate()
      return null
    }
    const tunnel = new OutboundTunnel(socket, this.#waiting, {
      closed: () => {
        clearTimeout(connection.timer)
        connection.reader = null
        this.#connections.delete(connection)
      },
      // What is still on its way to the outside has a descriptor, too.
      gone: release,
    })
    const connection: OutboundConnection = { tunnel, destination: null, reader: null, timer: undefined }
    this.#connections.add(connection)
    return connection
  }

  /** Takes the room of a connection, and returns a function that gives it back; null if there is none. */
  #takeRoom(): (() => void) | null {
    const { admit, mostConnections } = this.#commons
    const release = this.#rooms < mostConnections ? admit() : null
    if (release === null) return null
    this.#rooms += 1
    return () => {
      this.#rooms -= 1
      release()
    }
  }

  /**
   * Connects to the first of the destinations that is allowed and accepts the connection. If one takes long, the next is
   * tried beside it (RFC 8305, section 5).
   */
  #connect(
    connection: OutboundConnection,
    destinations: readonly OutboundDestination[],
    proxied: { head: string | null } | null,
  ): void {
    const { tunnel } = connection
    const refusals: OutboundRefusal[] = []
    const allowed = destinations.filter((destination) => {
      const refusal = this.#policy.judge(destination)
      if (refusal !== null) {
        refusals.push(refusal)
        this.#refused(describe(destination), refusal)
      }
      return refusal === null
    })
    const [refusal] = refusals
    const fail = (status: number, why: string): void => {
      if (proxied === null) {
        tunnel.cut()
        return
      }
      tunnel.respond(proxyResponse(status, why))
      tunnel.end()
    }
    const failPlainly = (): void => fail(502, 'The connection could not be opened.')
    const failWithCause = async (): Promise<void> => {
      if (proxied === null || failed === null) return failPlainly()
      const { destination, tookMs } = failed
      const place = describe(destination)
      const { connectCalls } = this.#commons
      const { status, sentences } = await explainConnectFailure(place, destination, tookMs, connectCalls)
      if (tunnel.closed) return
      this.#failed(place, sentences)
      fail(status, sentences)
    }
    let attempts = 0
    /** The last attempt that failed. */
    let failed: { destination: OutboundDestination; tookMs: number } | null = null
    const next = (): void => {
      if (tunnel.closed || tunnel.isOpen) return
      const destination = allowed.shift()
      const disturbance = destination === undefined ? null : this.#disturbanceOf(destination)
      // An earlier attempt may still succeed.
      if (attempts > 0 && (destination === undefined || disturbance?.blocks)) return
      if (destination === undefined && refusal !== undefined && destinations.length === refusals.length) {
        fail(403, `berth refuses this connection: ${refusal.reason}. ${refusal.remedy}`)
      } else if (destination === undefined) void failWithCause().catch(failPlainly)
      else if (disturbance?.blocks) fail(502, `A network fault refuses this connection. ${this.#liftRemedy}`)
      else dial(destination, disturbance)
    }
    const dial = (destination: OutboundDestination, disturbance: Disturbance | null): void => {
      connection.destination = destination
      tunnel.disturbance = disturbance
      const late = disturbance === null ? 0 : disturbance.delay('opening')
      if (late === null) {
        if (attempts === 0) fail(504, `A network fault loses this connection. ${this.#liftRemedy}`)
        return
      }
      attempts += 1
      const begin = (): void => {
        if (tunnel.closed) return
        const release = attempts > 1 ? this.#takeRoom() : () => {}
        if (release === null) {
          // Where there is no room beside the others, it is the next one once they have failed.
          attempts -= 1
          allowed.unshift(destination)
          return
        }
        const timer = allowed.length > 0 ? setTimeout(next, ATTEMPT_MS) : undefined
        const begun = performance.now()
        const onFailed = (): void => {
          clearTimeout(timer)
          attempts -= 1
          failed = { destination, tookMs: performance.now() - begun }
          next()
        }
        const onOpen = (): void => {
          clearTimeout(timer)
          connection.destination = destination
          tunnel.disturbance = disturbance
          // The policy may have changed while another destination was tried.
          if (this.#policy.judge(destination) !== null) tunnel.cut()
          else if (proxied?.head === null) tunnel.respond('HTTP/1.1 200 Connection Established\r\n\r\n')
        }
        const { address, port } = destination
        // At berth's own port, a connection of the relay would look like one of this machine's programs. So it takes the
        // way that berth gives servers, which no other port has.
        const unix = this.#policy.isOwn(address) ? this.#socketsOfBerth[port] : undefined
        const target = unix === undefined ? { hostname: address, port } : { unix }
        void tunnel.dial(target, onFailed, onOpen).then(release)
      }
      if (late === 0) begin()
      else setTimeout(begin, late)
    }
    next()
  }

  /** Returns the destinations that a host and a port mean, or a sentence why there are none. */
  async #lookUpHost(host: string, port: number): Promise<OutboundDestination[] | string> {
    if (isNumeric(host)) return [{ address: host, port, names: this.#names.namesOf(host) }]
    if (isLoopbackName(host)) return [{ address: '127.0.0.1', port, names: [host] }]
    const refusal = this.#policy.judgeName(host)
    if (this.#dnsRefusal(host) !== null) {
      if (refusal !== null) return `berth refuses this connection: ${refusal.reason}. ${refusal.remedy}`
      return `A network fault keeps the name ${host} from being looked up. ${this.#liftRemedy}`
    }
    const addresses = await this.#names
      .resolve(host, { search: true })
      .catch((error: unknown) => explainLookUpFailure(host, error))
    if (typeof addresses !== 'string' && addresses.length > 0)
      return addresses.map((address) => ({ address, port, names: [host] }))
    const why =
      typeof addresses === 'string'
        ? addresses
        : `There is no host with the name ${host}. Check its spelling.`
    this.#failed(`${host}:${port}`, why)
    return why
  }

  async #answer(query: Uint8Array, stream: boolean): Promise<Uint8Array | null> {
    // A resolver loses queries too, and programs ask again.
    if (this.#answering >= MOST_QUERIES) return null
    this.#answering += 1
    try {
      return await this.#lookUp(query, stream)
    } finally {
      this.#answering -= 1
    }
  }

  async #lookUp(query: Uint8Array, stream: boolean): Promise<Uint8Array | null> {
    const names = [readQuestion(query)?.name ?? '']
    const late = this.#disturbance?.isFor(names, null, null) ? this.#disturbance.delay('datagram') : 0
    const answer = late === null ? null : await this.#names.answer(query, stream).catch(() => null)
    if (late) await Bun.sleep(late)
    return answer
  }

  /** Returns the DNS code (RFC 1035, 4.1.1) with which a name is refused, by the policy or a fault; null if it is not. */
  #dnsRefusal(name: string): 'REFUSED' | 'NXDOMAIN' | 'SERVFAIL' | null {
    const refusal = this.#policy.judgeName(name)
    if (refusal !== null) {
      this.#refused(name, refusal)
      return 'REFUSED'
    }
    const disturbance = this.#disturbance?.isFor([name], null, null) ? this.#disturbance : null
    if (disturbance?.fault.refused) return 'NXDOMAIN'
    return disturbance?.fault.offline ? 'SERVFAIL' : null
  }

  #disturbanceOf({ names, address, port }: OutboundDestination): Disturbance | null {
    return this.#disturbance?.isFor(names, address, port) ? this.#disturbance : null
  }

  get #liftRemedy(): string {
    return `End it with "berth faults lift ${this.#serverId} network".`
  }

  /** Reports a connection that failed: curl and git show the number of the proxy's response alone. */
  #failed(destination: string, sentences: string): void {
    const [, reason = sentences, remedy = ''] = /^(.*?)\. ([A-Z].*)$/s.exec(sentences) ?? []
    if (this.#reports.admits(destination)) this.#report({ destination, reason, remedy, failed: true })
  }

  #refused(destination: string, refusal: OutboundRefusal): void {
    // A server can try any number of destinations.
    if (this.#reports.admits(destination)) this.#report({ destination, ...refusal })
  }
}

function receive(connection: OutboundConnection | undefined, bytes: Buffer | null): void {
  if (connection === undefined) return
  if (connection.reader === null) connection.tunnel.receive(bytes)
  else connection.reader(bytes)
}

/**
 * Reports whether a host is an address or looks like one. What is none, such as `127.1`, is refused by the policy instead
 * of looked up: resolvers take it for an address.
 */
const isNumeric = (host: string): boolean => /^[\d.]+$/.test(host) || host.includes(':')

/** Returns a destination for people: `example.com (10.0.0.5):443`. */
function describe({ address, port, names: [name] }: OutboundDestination): string {
  if (name !== undefined && name !== address) return `${name} (${address}):${port}`
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** Queries of one connection that are answered at a time. @bound program */
const MOST_OF_CONNECTION = 32

/** Bytes of queries, or of answers that are not read, before a connection is cut. @bound program */
const MOST_UNREAD = 2 ** 18

/**
 * Answers DNS queries over TCP (RFC 7766). Cuts the connection of a program that does not read the answers.
 *
 * @param answer returns the answer to a query, or null if it is lost
 */
function serveDns(
  connection: OutboundConnection,
  answer: (query: Uint8Array) => Promise<Uint8Array | null>,
): void {
  const { tunnel } = connection
  const received = new ReceivedBytes()
  let answering = 0
  const answerNext = (): void => {
    while (answering < MOST_OF_CONNECTION && !tunnel.closed) {
      const { bytes } = received
      if (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE(0)) return
      answering += 1
      void answer(received.take(2 + bytes.readUInt16BE(0)).subarray(2)).then((found) => {
        answering -= 1
        if (found === null || tunnel.unread > MOST_UNREAD) tunnel.cut()
        else if (!tunnel.closed) tunnel.respond(framed(found))
        answerNext()
      })
    }
  }
  connection.reader = (bytes) => {
    if (bytes === null) return tunnel.end()
    received.append(bytes)
    if (received.bytes.length > MOST_UNREAD) tunnel.cut()
    else answerNext()
  }
}

/** Milliseconds in which the head of a request to the proxy has to arrive. */
const HEAD_MS = 30_000

/** What a proxy does with a request. */
interface ProxyActions {
  /** Returns the destinations that a host and a port mean, or a sentence why there are none. */
  lookUp(host: string, port: number): Promise<OutboundDestination[] | string>
  /**
   * Connects to the first of the destinations that is allowed and accepts the connection.
   *
   * @param head what the other end gets first; null for a tunnel
   */
  connect(destinations: readonly OutboundDestination[], head: string | null): void
}

/** Serves a connection as an HTTP proxy, for one request (RFC 9110, section 9.3.6; RFC 9112, section 3.2.2). */
function serveProxy(connection: OutboundConnection, { lookUp, connect }: ProxyActions): void {
  const { tunnel } = connection
  const received = new ReceivedBytes()
  connection.timer = setTimeout(() => tunnel.cut(), HEAD_MS)
  const refuse = (status: number, why: string): void => {
    clearTimeout(connection.timer)
    connection.reader = () => {}
    tunnel.respond(proxyResponse(status, why))
    tunnel.end()
  }
  connection.reader = (bytes) => {
    if (bytes === null) return tunnel.cut()
    const searched = received.bytes.length
    received.append(bytes)
    const end = headEnd(received.bytes, searched)
    if (end === -1) {
      if (received.bytes.length > PROXY_HEAD_LIMIT) refuse(431, 'The head is too long.')
      return
    }
    clearTimeout(connection.timer)
    connection.reader = null
    const request = readProxyRequest(received.take(end).toString('latin1', 0, end - 4))
    if (typeof request === 'string') return refuse(400, request)
    const { host, port, head } = request
    if (head !== null) {
      tunnel.response = new ClosingResponse()
      tunnel.receive(Buffer.from(head, 'latin1'))
    }
    if (received.bytes.length > 0) tunnel.receive(received.take(received.bytes.length))
    void lookUp(host, port).then((destinations) => {
      if (tunnel.closed) return
      if (typeof destinations === 'string') refuse(502, destinations)
      else connect(destinations, head)
    })
  }
}

/** A connection that a server has opened, and what is known about it. */
interface OutboundConnection {
  tunnel: OutboundTunnel
  /** Where it goes; null as long as that is not known. */
  destination: OutboundDestination | null
  /** Takes bytes, and null for the end, in place of the tunnel. */
  reader: ((bytes: Buffer | null) => void) | null
  /** Cuts it if the head of its request does not arrive. */
  timer: Timer | undefined
}
