import { DelegatingCompute } from './delegating-compute.ts'
import type { Compute } from './driver.ts'
import type { SelectedDriver } from './select.ts'

/**
 * Stands in for the driver that is still being selected, so objects that need a driver can be created while the
 * probes run. Throws if it is called before the selection has resolved.
 */
export class PendingDriver extends DelegatingCompute {
  #driver: Compute | null = null

  /**
   * @param selecting resolves before the first call
   */
  constructor(selecting: Promise<SelectedDriver>) {
    super()
    selecting.then(
      ({ driver }) => {
        this.#driver = driver
      },
      () => {},
    )
  }

  protected override get inner(): Compute {
    if (this.#driver === null) throw new Error('A compute driver is asked for before one is selected.')
    return this.#driver
  }
}
