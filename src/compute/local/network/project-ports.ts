import type { PortRange } from '../../../config/config.ts'
import type { DialedConnection, DialHandlers } from '../../sandbox.ts'
import { MAX_FORWARDED } from './forward.ts'

/** The ports of projects that servers reach on their own loopback. Shared by the servers of a driver. */
export interface ProjectPorts {
  /** Null if there are none, or the system does not hand connections to them over. */
  range: PortRange | null
}

/** Receives the events of an accepted connection. */
export interface AcceptedConnection extends Omit<DialHandlers, 'opened'> {
  /** Called when the program sends no more. It may still read; the connection ends with `end`. Missing: it ends now. */
  ended?(): void
}

/**
 * Milliseconds without a byte after which the other end is asked whether it is still there: it may have lost its power. And one
 * that has said its last byte may have closed the connection, which looks the same until the kernel has forgotten it
 * (tcp(7), tcp_fin_timeout: 60 seconds).
 */
export const KEEP_ALIVE_MS = 70_000

/** A connection of a program of a server. A `Bun.Socket` is one. */
export interface ProgramSocket extends DialedConnection {
  /** Address of the program. */
  readonly remoteAddress: string
  /** Closes the sending half. Bytes that still arrive are read. */
  shutdown(): void
}

/** The ports at which public projects answer. */
export interface AnsweringPorts {
  now(): number[]
  /** Calls `listener` after each change. Returns a function that ends that. */
  onChange(listener: () => void): () => void
}

/** Takes a connection to a port of loopback, or returns null, and it is reset. */
export type AcceptAtPort = (port: number, socket: ProgramSocket) => AcceptedConnection | null

/** Returns handlers for a listener. Connections beyond `MAX_FORWARDED` are reset. */
export function acceptWith(accept: AcceptAtPort): Bun.SocketHandler<AcceptedConnection | null> {
  let open = 0
  return {
    open(socket) {
      open += 1
      socket.data = null
      if (open <= MAX_FORWARDED) {
        socket.setNoDelay(true)
        socket.data = accept(socket.localPort, socket)
      }
      if (socket.data === null) socket.terminate()
    },
    data: (socket, bytes) => socket.data?.data(bytes),
    drain: (socket) => socket.data?.drain(),
    close(socket) {
      open -= 1
      socket.data?.closed(false)
    },
    // A socket that has failed is closed, which `close` reports.
    error: () => {},
  }
}
