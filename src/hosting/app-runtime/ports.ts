import { DialRefused, type Sandbox } from '../../compute/sandbox.ts'
import { AppError } from './plan.ts'

/** Largest number of attempts to find a port if the system offers reserved ones. */
const ATTEMPTS = 100

/** The first port of an app whose server has its own network, where hardly any port is taken. */
const OWN_NETWORK_FIRST = 3000

/** The range of repeatable ports of the shared network, below those that the system assigns. */
const REPEATABLE_RANGE = { first: 21_000, last: 31_999 }

/** The parts of a sandbox that determine the ports of its app. */
type Server = Pick<Sandbox, 'dial' | 'network'>

/** A port that belongs to one app until `release`. */
export interface AppPort {
  readonly port: number
  /** Frees the port after the app's process has ended. */
  release(): void
}

/**
 * Assigns loopback ports to the apps of one berth, a different one to each on the same network: a server's own, or
 * this machine's that servers share.
 */
export class AppPorts {
  readonly #shared: SharedPorts
  readonly #own = new WeakMap<Server, OwnPorts>()

  /**
   * @param repeatable whether ports of the shared network are counted up, so every run has the same ones if they are
   * free
   */
  constructor({ repeatable = false } = {}) {
    this.#shared = new SharedPorts(repeatable)
  }

  /**
   * Returns a port of the server's network on which nothing listens: 3000 or the next free one if that is its own.
   *
   * @throws AppError if there is none; ComputeError
   */
  async reserve(server: Server): Promise<AppPort> {
    return server.network === 'own' ? this.#portsOf(server).reserve() : this.#shared.reserve()
  }

  /** Returns a certain port. @throws AppError if something listens on it, with the remedy; ComputeError */
  async claim(server: Server, port: number): Promise<AppPort> {
    return server.network === 'own' ? this.#portsOf(server).claim(port) : this.#shared.claim(port)
  }

  #portsOf(server: Server): OwnPorts {
    const ports = this.#own.get(server) ?? new OwnPorts(server)
    this.#own.set(server, ports)
    return ports
  }
}

/** The ports of one network that apps have. */
class Reservations {
  readonly #ports = new Set<number>()

  has(port: number): boolean {
    return this.#ports.has(port)
  }

  add(port: number): AppPort {
    this.#ports.add(port)
    return { port, release: () => void this.#ports.delete(port) }
  }
}

/** Ports of this machine's loopback. */
class SharedPorts {
  readonly #reserved = new Reservations()
  readonly #repeatable: boolean
  #next = REPEATABLE_RANGE.first

  constructor(repeatable: boolean) {
    this.#repeatable = repeatable
  }

  reserve(): AppPort {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const port = tryPort(this.#repeatable ? this.#takeNext() : 0)
      if (port !== null && !this.#reserved.has(port)) return this.#reserved.add(port)
    }
    throw new AppError('No port of this machine is free for the app. Stop programs that listen on many.')
  }

  claim(port: number): AppPort {
    if (this.#reserved.has(port)) throw takenError(port, 'which another app of this berth has')
    if (tryPort(port) === null) {
      throw takenError(port, 'on which another program of this machine listens')
    }
    return this.#reserved.add(port)
  }

  #takeNext(): number {
    const port = this.#next
    this.#next = port === REPEATABLE_RANGE.last ? REPEATABLE_RANGE.first : port + 1
    return port
  }
}

/** Ports of a server's own network. */
class OwnPorts {
  readonly #reserved = new Reservations()

  constructor(private readonly server: Server) {}

  async reserve(): Promise<AppPort> {
    for (let port = OWN_NETWORK_FIRST; port < OWN_NETWORK_FIRST + ATTEMPTS; port += 1) {
      if (this.#reserved.has(port)) continue
      const reserved = await this.#reserveIfFree(port)
      if (reserved !== null) return reserved
    }
    const last = OWN_NETWORK_FIRST + ATTEMPTS - 1
    throw new AppError(
      `No port from ${OWN_NETWORK_FIRST} to ${last} of the server is free for the app. Stop programs on it that listen on many.`,
    )
  }

  async claim(port: number): Promise<AppPort> {
    if (this.#reserved.has(port)) throw takenError(port, 'which another app of its server has')
    const reserved = await this.#reserveIfFree(port)
    if (reserved === null) throw takenError(port, 'on which another program of its server listens')
    return reserved
  }

  /** Reserves the port before it is looked at, as others ask for ports meanwhile. */
  async #reserveIfFree(port: number): Promise<AppPort | null> {
    const reserved = this.#reserved.add(port)
    try {
      if (!(await isListening(this.server, port))) return reserved
    } catch (error) {
      reserved.release()
      throw error
    }
    reserved.release()
    return null
  }
}

/** Reports whether a program inside the server listens on a port of 127.0.0.1. */
async function isListening(server: Server, port: number): Promise<boolean> {
  try {
    const handlers = { opened() {}, data() {}, drain() {}, closed() {} }
    const connection = await server.dial(port, '127.0.0.1', handlers)
    connection.terminate()
    return true
  } catch (error) {
    if (error instanceof DialRefused) return false
    throw error
  }
}

function takenError(port: number, by: string): AppError {
  return new AppError(
    `The app wants port ${port}, ${by}. Drop "port" from berth.json and have the app listen on the port in PORT, or use another.`,
  )
}

/** Returns the port of 127.0.0.1 if it is free, or any free one for 0; null if it is taken. */
function tryPort(port: number): number | null {
  try {
    const listener = Bun.listen({ hostname: '127.0.0.1', port, exclusive: true, socket: { data() {} } })
    const free = listener.port
    listener.stop(true)
    return free
  } catch {
    return null
  }
}
