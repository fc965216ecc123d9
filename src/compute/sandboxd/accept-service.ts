import type { ServedCall } from './call-stream.ts'
import { SocketJoin } from './socket-join.ts'

/** Connections to one port that wait for berth to take them; each takes a descriptor. @bound program */
const MOST_WAITING = 256

/** A connection that a program of the server has made. */
interface Accepted {
  /** Null until berth takes it. */
  join: SocketJoin | null
}

/** A port of the server's loopback at which sandboxd listens for berth. */
class AcceptingPort {
  readonly #waiting: Bun.Socket<Accepted>[] = []
  readonly #takers: ((socket: Bun.Socket<Accepted>) => void)[] = []

  /** Throws the system's error if a program of the server has the port. */
  constructor(port: number) {
    const socket: Bun.SocketHandler<Accepted> = {
      open: (socket) => this.#accept(socket),
      data: (socket, chunk) => socket.data.join?.receive(socket, chunk),
      drain: ({ data }) => data.join?.drain(),
      close: ({ data }, error) => data.join?.close(error),
      error: () => {},
    }
    Bun.listen({ hostname: '127.0.0.1', port, socket, data: { join: null }, allowHalfOpen: true })
    try {
      Bun.listen({ hostname: '::1', port, socket, data: { join: null }, allowHalfOpen: true })
    } catch {
      // The server has no IPv6.
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
    // Nothing is read before there is somewhere to write it.
    socket.pause()
    const taker = this.#takers.shift()
    if (taker !== undefined) taker(socket)
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(socket)
    else socket.terminate()
  }
}

const ports = new Map<number, AcceptingPort>()

/** Waits for a connection to a port of the server's loopback; answers when there is one, and joins it to the call's streams. */
export async function serveAccept({ input, stream, respond, over }: ServedCall): Promise<void> {
  const number = Number(input.port)
  const port = ports.get(number) ?? new AcceptingPort(number)
  ports.set(number, port)
  const socket = await port.take(over)
  const join = new SocketJoin(stream)
  socket.data.join = join
  over.addEventListener('abort', () => socket.terminate())
  respond({})
  const running = join.run(socket)
  socket.resume()
  await running
}
