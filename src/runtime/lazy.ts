import type { Lifecycle, Service } from './service.ts'

/** Whether a step of a service loads it; without a function it does not. */
interface LoadingSteps {
  recover?: () => boolean
  start?: () => boolean
}

/**
 * A value that is loaded on first use, with the modules behind it: a start that does not need it does not pay for it.
 */
export class Lazy<T> {
  readonly #load: () => Promise<T>
  readonly #stops: ((value: T) => void | Promise<void>)[] = []
  #loading: Promise<T> | undefined
  #loaded: { readonly value: T } | undefined

  /** @param load imports the modules and makes the value */
  constructor(load: () => Promise<T>) {
    this.#load = load
  }

  /** Loads the value at the first call. Every call resolves to the same one. */
  readonly get = (): Promise<T> => {
    this.#loading ??= this.#loadOnce()
    return this.#loading
  }

  /** The value if it has been loaded. */
  get loaded(): T | undefined {
    return this.#loaded?.value
  }

  /**
   * Returns a part of the value as a service. It loads the value to recover or start if `loads` says so for that
   * step, and never to stop. A value that is loaded after the stop is stopped before anybody gets it.
   */
  service(name: string, part: (value: T) => Lifecycle, loads: LoadingSteps = {}): Service {
    let stopped = false
    const run = async (step: keyof LoadingSteps): Promise<void> => {
      if (stopped || !loads[step]?.()) return
      const loaded = part(await this.get())
      if (!stopped) await loaded[step]?.()
    }
    return {
      name,
      recover: () => run('recover'),
      start: () => run('start'),
      stop: async () => {
        if (stopped) return
        stopped = true
        const stop = (value: T): void | Promise<void> => part(value).stop?.()
        if (this.#loaded) await stop(this.#loaded.value)
        else this.#stops.push(stop)
      },
    }
  }

  async #loadOnce(): Promise<T> {
    const value = await this.#load()
    this.#loaded = { value }
    for (const stop of this.#stops) await stop(value)
    return value
  }
}
