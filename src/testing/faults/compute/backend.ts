import { AsyncLocalStorage } from 'node:async_hooks'
import { ComputeError } from '../../../compute/driver.ts'

/** Tells in whose work the compute driver is to fail. Work begun within such work belongs to it, however long it takes. */
export class BackendFailure {
  readonly #reasons = new AsyncLocalStorage<string>()

  /** Does work in which the driver fails. @param reason what its failures say, a sentence */
  during<T>(reason: string, work: () => T): T {
    return this.#reasons.run(reason, work)
  }

  /** The failure that is due in the work that asks; null where none is. */
  due(): ComputeError | null {
    const reason = this.#reasons.getStore()
    return reason === undefined ? null : new ComputeError(reason)
  }
}
