import type { Connection } from '../runtime/connection.ts'
import type { Compute, Handle, Limits, Remains, Sender } from './driver.ts'
import type { Sandbox } from './sandbox.ts'
import type { Workspace } from './workspace.ts'

/** Passes every call on to another `Compute`. A subclass does some of it itself. */
export abstract class DelegatingCompute implements Compute {
  protected abstract readonly inner: Compute

  create(serverId: string): Promise<Handle> {
    return this.inner.create(serverId)
  }

  keep(handle: Handle): void {
    this.inner.keep(handle)
  }

  start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    return this.inner.start(serverId, handle, limits)
  }

  workspace(handle: Handle): Workspace {
    return this.inner.workspace(handle)
  }

  emptyCaches(handle: Handle): Promise<void> {
    return this.inner.emptyCaches(handle)
  }

  checkFiles(handle: Handle): void {
    this.inner.checkFiles(handle)
  }

  takeStock(servers: readonly Handle[], deleted: readonly Handle[]): Remains {
    return this.inner.takeStock(servers, deleted)
  }

  destroy(handle: Handle): Promise<void> {
    return this.inner.destroy(handle)
  }

  senderOf(connection: Connection): Promise<Sender> {
    return this.inner.senderOf(connection)
  }
}
