import { codeOf, messageOf } from '../../runtime/error-info.ts'
import {
  ComputeError,
  type DialedConnection,
  type DialHandlers,
  DialRefused,
  type LoopbackHost,
} from '../driver.ts'
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
  const connecting = network.connect(port, host, { data: handlers, socket: EVENTS })
  return connecting.catch((error) => Promise.reject(dialError(error, port, host)))
}

/** Returns the error of `Sandbox.dial` for a connection that could not be opened. */
function dialError(error: unknown, port: number, host: LoopbackHost): Error {
  if (codeOf(error) === 'ECONNREFUSED') return new DialRefused(host, port, { cause: error })
  return new ComputeError(`The server's port ${port} cannot be reached: ${messageOf(error)}`, {
    cause: error,
  })
}
