import type { Connection } from '../runtime/connection.ts'
import type { Compute, Handle, Limits } from './driver.ts'
import type { Sandbox } from './sandbox.ts'
import type { Workspace } from './workspace.ts'

/** Passes every call on to another `Compute`. A subclass does some of it itself. */
export abstract class DelegatingCompute implements Compute {
  protected abstract readonly inner: Compute

  create(serverId: string): Promise<Handle> {
    return this.inner.create(serverId)
  }

  start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    return this.inner.start(serverId, handle, limits)
  }

  workspace(handle: Handle): Workspace {
    return this.inner.workspace(handle)
  }

  reap(handles: Handle[]): Promise<void> {
    return this.inner.reap(handles)
  }

  destroy(handle: Handle): Promise<void> {
    return this.inner.destroy(handle)
  }

  sweep(known: Handle[]): Promise<void> {
    return this.inner.sweep(known)
  }

  isSentFromServer(connection: Connection): Promise<boolean> {
    return this.inner.isSentFromServer(connection)
  }
}
