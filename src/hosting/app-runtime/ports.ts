import { AppError } from './plan.ts'

/** Largest number of attempts to find a port if the system offers reserved ones. */
const ATTEMPTS = 100

/** A port that belongs to one app until `release`. */
export interface AppPort {
  readonly port: number
  /** Frees the port after the app's process has ended. */
  release(): void
}

/** The range of repeatable ports, below those that the system assigns. */
const REPEATABLE_RANGE = { first: 21_000, last: 31_999 }

/** Assigns ports of 127.0.0.1 to the apps of one berth, a different one to each. */
export class AppPorts {
  readonly #reserved = new Set<number>()
  readonly #repeatable: boolean
  #next = REPEATABLE_RANGE.first

  /**
   * @param repeatable whether ports are counted up, so every run has the same ones if they are free
   */
  constructor({ repeatable = false } = {}) {
    this.#repeatable = repeatable
  }

  /**
   * Reserves a port on which nothing listens.
   *
   * @throws AppError if there is none
   */
  reserve(): AppPort {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const port = tryPort(this.#repeatable ? this.#reserveInOrder() : 0)
      if (port !== null && !this.#reserved.has(port)) return this.#createPort(port)
    }
    throw new AppError('No port of this machine is free for the app. Stop programs that listen on many.')
  }

  /**
   * Reserves a certain port.
   *
   * @throws AppError, with the remedy, if something listens on it
   */
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
    return this.#createPort(port)
  }

  #reserveInOrder(): number {
    const port = this.#next
    this.#next = port === REPEATABLE_RANGE.last ? REPEATABLE_RANGE.first : port + 1
    return port
  }

  #createPort(port: number): AppPort {
    this.#reserved.add(port)
    return { port, release: () => void this.#reserved.delete(port) }
  }
}

/** Returns the port if it is free, or any free one for 0; null if it is taken. */
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
