import { KEEP_ALIVE_MS } from '../local/network/project-ports.ts'
import type { ServedCall } from './call-stream.ts'
import { ServiceError, SocketJoin } from './socket-join.ts'

/** Connections that wait for berth to take them, of each `AcceptingPorts`; each takes a descriptor. @bound program */
const MOST_WAITING = 256

/** A connection that a program of the server has made. */
interface Accepted {
  /** Null until berth takes it. */
  join: SocketJoin | null
}

/** Ports of the server's loopback at which sandboxd listens for berth. */
class AcceptingPorts {
  readonly #listeners = new Map<number, Bun.TCPSocketListener<Accepted>[]>()
  readonly #waiting: Bun.Socket<Accepted>[] = []
  readonly #takers: ((socket: Bun.Socket<Accepted>) => void)[] = []

  /** Listens at a port. Does nothing if it does already. Throws the system's error if a program of the server has the port. */
  open(port: number): void {
    if (this.#listeners.has(port)) return
    const socket: Bun.SocketHandler<Accepted> = {
      open: (socket) => this.#accept(socket),
      data: (socket, chunk) => socket.data.join?.receive(socket, chunk),
      end: ({ data }) => data.join?.end(),
      drain: ({ data }) => data.join?.drain(),
      close: ({ data }, error) => data.join?.close(error),
      error: () => {},
    }
    const at = (hostname: string): Bun.TCPSocketListener<Accepted> =>
      Bun.listen({ hostname, port, socket, data: { join: null }, allowHalfOpen: true })
    const listeners = [at('127.0.0.1')]
    this.#listeners.set(port, listeners)
    try {
      listeners.push(at('::1'))
    } catch {
      // The server has no IPv6.
    }
  }

  /** Listens at these ports, but those that programs of the server have, and no longer at others. */
  openOnly(ports: readonly number[]): void {
    for (const [port, listeners] of this.#listeners) {
      if (ports.includes(port)) continue
      for (const listener of listeners) listener.stop()
      this.#listeners.delete(port)
    }
    for (const port of ports) {
      try {
        this.open(port)
      } catch {
        // It stays that program's.
      }
    }
  }

  /** Resolves to the next connection; rejects when the call is over before there is one. */
  take(over: AbortSignal): Promise<Bun.Socket<Accepted>> {
    const { promise, resolve, reject } = Promise.withResolvers<Bun.Socket<Accepted>>()
    const waiting = this.#waiting.shift()
    if (waiting !== undefined) return Promise.resolve(waiting)
    this.#takers.push(resolve)
    over.addEventListener('abort', () => {
      const index = this.#takers.indexOf(resolve)
      if (index !== -1) this.#takers.splice(index, 1)
      reject(new Error('The call is over.'))
    })
    return promise
  }

  #accept(socket: Bun.Socket<Accepted>): void {
    socket.data = { join: null }
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    // Nothing is read before there is somewhere to write it.
    socket.pause()
    const taker = this.#takers.shift()
    if (taker !== undefined) taker(socket)
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(socket)
    else socket.terminate()
  }
}

const single = new Map<number, AcceptingPorts>()
const projects = new AcceptingPorts()

/** Listens at the ports of projects that the call names, but those that programs have, and no longer at others. */
export function serveListen({ input, respond }: ServedCall): void {
  projects.openOnly(Array.isArray(input.ports) ? input.ports.map(Number) : [])
  respond({})
}

/**
 * Waits for a connection to the port that the call names, or to any of those of projects; answers with the port when there is
 * one, and joins it to the call's streams.
 */
export async function serveAccept({ input, stream, respond, over }: ServedCall): Promise<void> {
  const socket = await portsOf(input.port).take(over)
  const join = new SocketJoin(stream)
  socket.data.join = join
  over.addEventListener('abort', () => {
    // When both sides have ended, the last bytes may still be on their way to the program.
    if (!stream.over) socket.terminate()
  })
  respond({ port: socket.localPort })
  const running = join.run(socket)
  socket.resume()
  await running
  // What berth was told before is only that the program sends no more.
  if (join.hasEnded && !stream.over) throw new ServiceError('reset', 'The program has closed the connection.')
}

/** @throws the system's error if a program of the server has the port */
function portsOf(named: unknown): AcceptingPorts {
  if (named === undefined) return projects
  const port = Number(named)
  const ports = single.get(port) ?? new AcceptingPorts()
  ports.open(port)
  single.set(port, ports)
  return ports
}
