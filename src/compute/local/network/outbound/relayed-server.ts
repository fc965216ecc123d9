import { OncePerPeriod } from '../../../../runtime/once-per-period.ts'
import type { NetworkFault, OutboundSettings, RefusedDestination } from '../../../outbound-control.ts'
import { Disturbance } from './disturbance.ts'
import { readQuestion } from './dns-message.ts'
import type { RelayedSocket } from './messages.ts'
import { framed, NameServer } from './name-server.ts'
import type { OriginalDestination } from './original-destination.ts'
import { type Destination, isLoopbackName, OutboundPolicy, type Refusal } from './policy.ts'
import { HEAD_LIMIT, headEnd, proxyResponse, readProxyRequest } from './proxy-request.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { Tunnel, type TunnelSocket, WaitingBytes } from './tunnel.ts'

const DNS_PORT = 53

/** Milliseconds in which a destination is reported as refused once, and the destinations that are reported in them. */
const REPORT_PERIOD_MS = 100
const MOST_REPORTED = 20

/** Milliseconds in which the head of a request to the proxy has to arrive. */
const HEAD_MS = 30_000

/** Queries of one server that are answered at a time. */
const MOST_QUERIES = 500

/** The same, of one connection; and bytes of its queries, or of answers that are not read, before it is cut. */
const MOST_STREAM_QUERIES = 32
const MOST_UNREAD = 2 ** 18

/** What a relayed server shares with the others. */
export interface RelayCommons {
  readonly originalDestination: OriginalDestination
  /** Connections that one server may have. */
  readonly mostConnections: number
  /** Takes the room of one connection, and returns a function that gives it back; null if there is none. */
  readonly admit: () => (() => void) | null
}

/** A connection of the server, and what is known about it. */
interface Connection {
  tunnel: Tunnel
  /** Where it goes; null as long as that is not known. */
  place: Destination | null
  /** Takes bytes, and null for the end, in place of the tunnel. */
  reader: ((bytes: Buffer | null) => void) | null
  /** Cuts it if the head of its request does not arrive. */
  timer: Timer | undefined
}

type Socket = Bun.Socket<Connection>

/** What leaves one server: connections, requests to the proxy and look-ups of names. */
export class RelayedServer {
  readonly #commons: RelayCommons
  readonly #serverId: string
  readonly #report: (refused: RefusedDestination) => void
  readonly #names: NameServer
  readonly #connections = new Set<Connection>()
  readonly #waiting = new WaitingBytes()
  readonly #stops: (() => void)[] = []
  readonly #reports = new OncePerPeriod(REPORT_PERIOD_MS, MOST_REPORTED)
  #policy: OutboundPolicy
  #disturbance: Disturbance | null = null
  /** Queries under way. */
  #answering = 0

  constructor(
    commons: RelayCommons,
    serverId: string,
    settings: OutboundSettings,
    report: (refused: RefusedDestination) => void,
  ) {
    this.#commons = commons
    this.#serverId = serverId
    this.#policy = new OutboundPolicy(settings, serverId)
    this.#report = report
    this.#names = new NameServer({ refusal: (name) => this.#dnsRefusal(name) })
  }

  /** Begins to take what arrives at a socket. Throws if the descriptor is no such socket. */
  async open({ fd, purpose, port = 0 }: RelayedSocket): Promise<void> {
    if (purpose === 'dns') return this.#openNameServer(fd)
    const listener = Bun.listen<Connection>({
      // Adopts the descriptor, which Bun's types do not have.
      ...({ fd } as unknown as { hostname: string; port: number }),
      allowHalfOpen: true,
      socket: {
        open: (socket) => (purpose === 'machine' ? this.#toMachine(socket, port) : this.#accept(socket)),
        data: (socket, bytes) => receive(socket, bytes),
        end: (socket) => receive(socket, null),
        drain: (socket) => socket.data?.tunnel.drain(),
        close: (socket, error) => socket.data?.tunnel.insideClosed(error !== undefined),
        error: (socket) => socket.data?.tunnel.cut(),
      },
    })
    this.#stops.push(() => listener.stop())
  }

  /** Changes what the server may reach. Cuts the connections that it no longer may have. */
  apply(settings: OutboundSettings): void {
    this.#policy = new OutboundPolicy(settings, this.#serverId)
    this.#reports.reset()
    for (const { place, tunnel } of [...this.#connections]) {
      if (place !== null && this.#policy.judge(place) !== null) tunnel.cut()
    }
  }

  /** Reports destinations again that have just been reported. */
  renewReports(): void {
    this.#reports.reset()
  }

  /** Begins a fault, or ends it. */
  disturb(fault: NetworkFault | null): void {
    this.#disturbance = fault === null ? null : new Disturbance(fault)
    for (const { place, tunnel } of [...this.#connections]) {
      if (place === null) continue
      const disturbance = this.#disturbanceOf(place)
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
      ...({ fd } as unknown as { port: number }),
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

  #accept(socket: Socket): void {
    const connection = this.#begin(socket)
    if (connection === null) return
    const place = this.#commons.originalDestination((socket as unknown as { fd: number }).fd)
    // Nothing redirects loopback, so that a connection to it is one to the proxy.
    if (place === null || /^(?:127\.|::1$)/.test(place.address)) this.#readProxyRequest(connection)
    else if (place.port === DNS_PORT) this.#readQueries(connection)
    else this.#connect(connection, [{ ...place, names: this.#names.namesOf(place.address) }], null)
  }

  /** Hands a service of this machine into the server. */
  #toMachine(socket: Socket, port: number): void {
    const { tunnel } = this.#begin(socket) ?? {}
    tunnel?.dial('127.0.0.1', port, () => tunnel.dial('::1', port))
  }

  #begin(socket: Socket): Connection | null {
    const { admit, mostConnections } = this.#commons
    const release = this.#connections.size < mostConnections ? admit() : null
    if (release === null) {
      socket.terminate()
      return null
    }
    socket.setNoDelay(true)
    const tunnel = new Tunnel(socket as TunnelSocket, this.#waiting, () => {
      clearTimeout(connection.timer)
      connection.reader = null
      this.#connections.delete(connection)
      release()
    })
    const connection: Connection = { tunnel, place: null, reader: null, timer: undefined }
    socket.data = connection
    this.#connections.add(connection)
    return connection
  }

  /** Connects to the first of the places that is allowed and accepts the connection. */
  #connect(
    connection: Connection,
    places: readonly Destination[],
    proxied: { head: string | null } | null,
  ): void {
    const { tunnel } = connection
    const refusals: Refusal[] = []
    const allowed = places.filter((place) => {
      const refusal = this.#policy.judge(place)
      if (refusal !== null) {
        refusals.push(refusal)
        this.#refused(destinationOf(place), refusal)
      }
      return refusal === null
    })
    const [refusal] = refusals
    const fail = (status: string, why: string): void => {
      if (proxied === null) {
        tunnel.cut()
        return
      }
      tunnel.respond(proxyResponse(status, why))
      tunnel.end()
    }
    const next = (): void => {
      const place = allowed.shift()
      const disturbance = place === undefined ? null : this.#disturbanceOf(place)
      if (place === undefined && refusal !== undefined && places.length === refusals.length) {
        fail('403 Forbidden', `berth refuses this connection: ${refusal.reason}. ${refusal.remedy}`)
      } else if (place === undefined) fail('502 Bad Gateway', 'The connection could not be opened.')
      else if (disturbance?.blocks) fail('502 Bad Gateway', 'A network fault refuses this connection.')
      else dial(place, disturbance)
    }
    const dial = (place: Destination, disturbance: Disturbance | null): void => {
      connection.place = place
      tunnel.disturbance = disturbance
      const late = disturbance === null ? 0 : disturbance.delay('opening')
      if (late === null) {
        fail('504 Gateway Timeout', 'A network fault loses this connection.')
        return
      }
      const begin = (): void => {
        if (tunnel.closed) return
        tunnel.dial(place.address, place.port, next, () => {
          if (proxied?.head === null) tunnel.respond('HTTP/1.1 200 Connection Established\r\n\r\n')
        })
      }
      if (late === 0) begin()
      else setTimeout(begin, late)
    }
    next()
  }

  /** Serves as an HTTP proxy (RFC 9110, section 9.3.6; RFC 9112, section 3.2.2). */
  #readProxyRequest(connection: Connection): void {
    const { tunnel } = connection
    const received = new ReceivedBytes()
    connection.timer = setTimeout(() => tunnel.cut(), HEAD_MS)
    const refuse = (status: string, why: string): void => {
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
        if (received.bytes.length > HEAD_LIMIT)
          refuse('431 Request Header Fields Too Large', 'The head is too long.')
        return
      }
      clearTimeout(connection.timer)
      connection.reader = null
      const request = readProxyRequest(received.take(end).toString('latin1', 0, end - 4))
      if (request === null)
        return refuse('400 Bad Request', 'Only CONNECT and http:// URLs are proxied here.')
      const { host, port, head } = request
      if (head !== null) tunnel.receive(Buffer.from(head, 'latin1'))
      if (received.bytes.length > 0) tunnel.receive(received.take(received.bytes.length))
      void this.#placesOf(host, port).then(
        (places) => {
          if (tunnel.closed) return
          if (typeof places === 'string') refuse('502 Bad Gateway', places)
          else this.#connect(connection, places, { head })
        },
        () => refuse('502 Bad Gateway', `The name ${host} could not be looked up.`),
      )
    }
  }

  /** Returns the places that a host and a port mean, or a sentence why there are none. */
  async #placesOf(host: string, port: number): Promise<Destination[] | string> {
    if (isNumeric(host)) return [{ address: host, port, names: this.#names.namesOf(host) }]
    if (isLoopbackName(host)) return [{ address: '127.0.0.1', port, names: [host] }]
    const refusal = this.#policy.judgeName(host)
    if (this.#dnsRefusal(host) !== null) {
      if (refusal !== null) return `berth refuses this connection: ${refusal.reason}. ${refusal.remedy}`
      return `A network fault keeps the name ${host} from being looked up.`
    }
    const addresses = await this.#names.resolve(host)
    if (addresses.length === 0) return `There is no host with the name ${host}.`
    return addresses.map((address) => ({ address, port, names: [host] }))
  }

  /** Answers DNS queries over TCP (RFC 7766). Cuts the connection of a program that does not read the answers. */
  #readQueries(connection: Connection): void {
    const { tunnel } = connection
    const received = new ReceivedBytes()
    let answering = 0
    const answerNext = (): void => {
      while (answering < MOST_STREAM_QUERIES && !tunnel.closed) {
        const { bytes } = received
        if (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE(0)) return
        answering += 1
        void this.#answer(received.take(2 + bytes.readUInt16BE(0)).subarray(2), true).then((answer) => {
          answering -= 1
          if (answer === null || tunnel.unread > MOST_UNREAD) tunnel.cut()
          else if (!tunnel.closed) tunnel.respond(framed(answer))
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

  #disturbanceOf({ names, address, port }: Destination): Disturbance | null {
    return this.#disturbance?.isFor(names, address, port) ? this.#disturbance : null
  }

  #refused(destination: string, refusal: Refusal): void {
    // A server can try any number of destinations.
    if (this.#reports.admits(destination)) this.#report({ destination, ...refusal })
  }
}

function receive({ data: connection }: Socket, bytes: Buffer | null): void {
  if (connection === undefined) return
  if (connection.reader === null) connection.tunnel.receive(bytes)
  else connection.reader(bytes)
}

/**
 * Reports whether a host is an address or looks like one. What is none, such as `127.1`, is refused by the policy instead
 * of looked up: resolvers take it for an address.
 */
const isNumeric = (host: string): boolean => /^[\d.]+$/.test(host) || host.includes(':')

/** Returns a place for people: `example.com (10.0.0.5):443`. */
function destinationOf({ address, port, names: [name] }: Destination): string {
  if (name !== undefined && name !== address) return `${name} (${address}):${port}`
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
