import type { Connection } from '../runtime/connection.ts'
import type { Compute, Handle, Limits, Sandbox } from './driver.ts'
import type { SelectedDriver } from './select.ts'
import type { Workspace } from './workspace.ts'

/**
 * Stands in for the driver that is still being selected, so objects that need a driver can be created while the
 * probes run. Throws if it is called before the selection has resolved.
 */
export class PendingDriver implements Compute {
  #driver: Compute | null = null

  /**
   * @param selecting resolves before the first call
   */
  constructor(selecting: Promise<SelectedDriver>) {
    selecting.then(
      ({ driver }) => {
        this.#driver = driver
      },
      () => {},
    )
  }

  create(serverId: string): Promise<Handle> {
    return this.#selected.create(serverId)
  }

  start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    return this.#selected.start(serverId, handle, limits)
  }

  workspace(handle: Handle): Workspace {
    return this.#selected.workspace(handle)
  }

  reap(handles: Handle[]): Promise<void> {
    return this.#selected.reap(handles)
  }

  destroy(handle: Handle): Promise<void> {
    return this.#selected.destroy(handle)
  }

  sweep(known: Handle[]): Promise<void> {
    return this.#selected.sweep(known)
  }

  isSentFromServer(connection: Connection): Promise<boolean> {
    return this.#selected.isSentFromServer(connection)
  }

  get #selected(): Compute {
    if (this.#driver === null) throw new Error('A compute driver is asked for before one is selected.')
    return this.#driver
  }
}
