import { codeOf, messageOf } from '../../runtime/error-info.ts'
import {
  ComputeError,
  type DialedConnection,
  type DialHandlers,
  DialRefused,
  type LoopbackHost,
} from '../sandbox.ts'
import type { ServerNetwork } from './network/server-network.ts'

/** Passes the events of a Bun socket on to the `DialHandlers` that are its data. One object serves all sockets. */
const EVENTS: Bun.SocketHandler<DialHandlers> = {
  open(socket) {
    socket.setNoDelay(true)
    socket.data.opened(socket)
  },
  data: (socket, chunk) => socket.data.data(chunk),
  drain: (socket) => socket.data.drain(),
  close: (socket, error) => socket.data.closed(error !== undefined && error !== null),
  error: () => {},
  // The promise of `Bun.connect` rejects too.
  connectError: () => {},
}

/** Implements `Sandbox.dial` for a server that shares this machine's network. */
export function dialLoopback(
  port: number,
  host: LoopbackHost,
  handlers: DialHandlers,
): Promise<DialedConnection> {
  const connecting = Bun.connect<DialHandlers>({ hostname: host, port, data: handlers, socket: EVENTS })
  return connecting.catch((error) => Promise.reject(dialError(error, port, host)))
}

/** Implements `Sandbox.dial` for a server with its own network. */
export function dialNetwork(
  network: ServerNetwork,
  port: number,
  host: LoopbackHost,
  handlers: DialHandlers,
): Promise<DialedConnection> {
  const connection = new NetworkConnection(network, host, handlers)
  const connecting = network.connect(port, host, { data: connection, socket: NETWORK_EVENTS })
  return connecting.then(
    () => connection,
    (error) => Promise.reject(dialError(error, port, host)),
  )
}

/** A connection to a port of a server's own network, which gets the socket back at the end. */
class NetworkConnection implements DialedConnection {
  readonly handlers: DialHandlers
  readonly #network: ServerNetwork
  readonly #host: LoopbackHost
  #socket: Bun.Socket<NetworkConnection> | null = null

  constructor(network: ServerNetwork, host: LoopbackHost, handlers: DialHandlers) {
    this.#network = network
    this.#host = host
    this.handlers = handlers
  }

  opened(socket: Bun.Socket<NetworkConnection>): void {
    this.#socket = socket
    this.handlers.opened(this)
  }

  closed(failed: boolean): void {
    this.#socket = null
    this.handlers.closed(failed)
  }

  write(bytes: Uint8Array, offset = 0, length = bytes.length - offset): number {
    return this.#socket?.write(bytes, offset, length) ?? -1
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  end(): void {
    if (this.#socket !== null) this.#network.end(this.#socket, this.#host)
  }

  terminate(): void {
    this.#socket?.terminate()
  }
}

const NETWORK_EVENTS: Bun.SocketHandler<NetworkConnection> = {
  open(socket) {
    socket.setNoDelay(true)
    socket.data.opened(socket)
  },
  data: (socket, chunk) => socket.data.handlers.data(chunk),
  drain: (socket) => socket.data.handlers.drain(),
  close: (socket, error) => socket.data.closed(error !== undefined && error !== null),
  error: () => {},
}

/** Returns the error of `Sandbox.dial` for a connection that could not be opened. */
function dialError(error: unknown, port: number, host: LoopbackHost): Error {
  if (codeOf(error) === 'ECONNREFUSED') return new DialRefused(host, port, { cause: error })
  return new ComputeError(`The server's port ${port} cannot be reached: ${messageOf(error)}`, {
    cause: error,
  })
}
