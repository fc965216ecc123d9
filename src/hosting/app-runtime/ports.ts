import { AppError } from './plan.ts'

/** How often another port is tried where the system offers one that is given out. */
const ATTEMPTS = 100

/** A port that is an app's own until it is let go. */
export interface AppPort {
  readonly port: number
  /** The app's process is gone. */
  release(): void
}

/** Where ports are counted from that repeat from run to run: below those that the system gives out by itself. */
const REPEATED = { first: 21_000, last: 31_999 }

/** The ports of 127.0.0.1 that the apps of one berth listen on; no two apps have the same. */
export class AppPorts {
  readonly #reserved = new Set<number>()
  readonly #repeatable: boolean
  #next = REPEATED.first

  /** @param repeatable ports are counted up, so that they are the same in every run as far as they are free */
  constructor({ repeatable = false } = {}) {
    this.#repeatable = repeatable
  }

  /** A port on which nothing listens. @throws AppError where there is none */
  reserve(): AppPort {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const port = tryPort(this.#repeatable ? this.#counted() : 0)
      if (port !== null && !this.#reserved.has(port)) return this.#give(port)
    }
    throw new AppError('No port of this machine is free for the app. Stop programs that listen on many.')
  }

  /** A certain port. @throws AppError where something listens on it, with the remedy */
  claim(port: number): AppPort {
    const remedy = `Drop "port" from berth.json and have the app listen on the port in PORT, or use another.`
    if (this.#reserved.has(port)) {
      throw new AppError(`The app wants port ${port}, which another app of this berth has. ${remedy}`)
    }
    if (tryPort(port) === null) {
      throw new AppError(
        `The app wants port ${port}, on which another program of this machine listens. ${remedy}`,
      )
    }
    return this.#give(port)
  }

  #counted(): number {
    const port = this.#next
    this.#next = port === REPEATED.last ? REPEATED.first : port + 1
    return port
  }

  #give(port: number): AppPort {
    this.#reserved.add(port)
    return { port, release: () => void this.#reserved.delete(port) }
  }
}

/** The port if it is free, or any free one for 0; null where it is taken. */
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
