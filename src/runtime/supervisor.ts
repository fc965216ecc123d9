import { StartupError } from '../errors.ts'
import { messageOf } from './error-info.ts'
import type { Logger } from './logger.ts'
import type { Service } from './service.ts'

/** Starts services in order, one after the other, and stops them in reverse. */
export class Supervisor {
  readonly #services: readonly Service[]
  readonly #logger: Logger
  readonly #aborted = new AbortController()
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #started = false

  /** @param services in the order in which they start */
  constructor(services: readonly Service[], logger: Logger) {
    this.#services = services
    this.#logger = logger
  }

  /** Fires when the services are about to stop, or their start is given up. */
  get aborted(): AbortSignal {
    return this.#aborted.signal
  }

  /** Whether every service has started. */
  get started(): boolean {
    return this.#started
  }

  /** Lets every service recover. @throws Error that names the service which could not, StartupError as it is */
  async recover(): Promise<void> {
    for (const service of this.#services) await attempt(service, 'recover')
  }

  /**
   * Starts every service; further calls wait for the same start. Resolves early if the start is aborted.
   *
   * @throws Error that names the service which could not start, StartupError as it is
   */
  start(): Promise<void> {
    this.#starting ??= this.#start()
    return this.#starting
  }

  /** Gives up what a start is still to do. */
  abort(): void {
    this.#aborted.abort()
  }

  /**
   * Stops every service, also those that have not started, and logs each failure by the service's name. Resolves when
   * a start under way has ended as well.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #start(): Promise<void> {
    for (const service of this.#services) {
      if (this.#aborted.signal.aborted) return
      await attempt(service, 'start')
    }
    this.#started = true
  }

  async #stop(): Promise<void> {
    this.abort()
    for (const service of this.#services.toReversed()) {
      try {
        await service.stop?.()
      } catch (error) {
        this.#logger.error(`${service.name} could not be stopped`, { error })
      }
    }
    await this.#starting?.catch(() => {})
  }
}

/** Calls a method of a service, and gives its failure the service's name. */
async function attempt(service: Service, step: 'recover' | 'start'): Promise<void> {
  try {
    await service[step]?.()
  } catch (error) {
    if (error instanceof StartupError) throw error
    const reason = messageOf(error)
    throw new Error(`${service.name} could not ${step}: ${reason}`, { cause: error })
  }
}
