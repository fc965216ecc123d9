/** Delays after which an address is asked again at which nothing listens. The first are short, for apps that start at once. */
const UNHEARD_MS = [5, 10, 10, 20, 20, 40, 40, 80, 100]

/** Delays after a response that is no success. An app logs each, so they grow. */
const UNHEALTHY_MS = [100, 100, 100, 200, 400, 800, 1600, 3000]

/** Decides when an address of an app that is not healthy yet is asked again. */
export class RetryDelays {
  #unheard = 0
  #unhealthy = 0

  /** Returns the milliseconds until the next request. @param isHeard whether a program listens there */
  next(isHeard: boolean): number {
    if (isHeard) return at(UNHEALTHY_MS, this.#unhealthy++)
    this.#unhealthy = 0
    return at(UNHEARD_MS, this.#unheard++)
  }
}

/** Returns an entry of a list, or its last one behind the end. */
const at = (list: readonly number[], index: number): number => list[Math.min(index, list.length - 1)] ?? 0
