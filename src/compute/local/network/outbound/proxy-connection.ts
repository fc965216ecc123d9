import type { Connection } from './connection.ts'
import type { Destination } from './policy.ts'
import { HEAD_LIMIT, headEnd, proxyResponse, readProxyRequest } from './proxy-request.ts'
import { ReceivedBytes } from './received-bytes.ts'

/** Milliseconds in which the head of a request to the proxy has to arrive. */
const HEAD_MS = 30_000

/** What a proxy does with a request. */
interface ProxyActions {
  /** Returns the destinations that a host and a port mean, or a sentence why there are none. */
  lookUp(host: string, port: number): Promise<Destination[] | string>
  /**
   * Connects to the first of the destinations that is allowed and accepts the connection.
   *
   * @param head what the other end gets first; null for a tunnel
   */
  connect(destinations: readonly Destination[], head: string | null): void
}

/** Serves a connection as an HTTP proxy, for one request (RFC 9110, section 9.3.6; RFC 9112, section 3.2.2). */
export function serveProxy(connection: Connection, { lookUp, connect }: ProxyActions): void {
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
    if (request === null) return refuse('400 Bad Request', 'Only CONNECT and http:// URLs are proxied here.')
    const { host, port, head } = request
    if (head !== null) tunnel.receive(Buffer.from(head, 'latin1'))
    if (received.bytes.length > 0) tunnel.receive(received.take(received.bytes.length))
    void lookUp(host, port).then(
      (destinations) => {
        if (tunnel.closed) return
        if (typeof destinations === 'string') refuse('502 Bad Gateway', destinations)
        else connect(destinations, head)
      },
      () => refuse('502 Bad Gateway', `The name ${host} could not be looked up.`),
    )
  }
}
