import { AsyncLocalStorage } from 'node:async_hooks'
import { ComputeError } from '../../../compute/compute-error.ts'

/** Makes the compute driver fail in the work of certain requests, including all that this work begins. */
export class BackendFailure {
  readonly #reasons = new AsyncLocalStorage<string>()

  /**
   * Runs work in which the driver fails.
   *
   * @param reason the failures' message, a sentence
   */
  during<T>(reason: string, work: () => T): T {
    return this.#reasons.run(reason, work)
  }

  /** Returns the failure for the calling work; null if it should not fail. */
  current(): ComputeError | null {
    const reason = this.#reasons.getStore()
    return reason === undefined ? null : new ComputeError(reason)
  }
}
