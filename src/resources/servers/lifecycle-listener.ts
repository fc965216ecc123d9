import type { Lazy } from '../../runtime/lazy.ts'
import type { ServerRow } from './table.ts'

/**
 * Receives the events of servers. Each method is called in the server's turn: nothing else starts or stops it
 * meanwhile.
 */
export interface ServerLifecycleListener {
  /** Called when the server's sandbox has started. The server does not wait for the listener. */
  serverStarted?(serverId: string): void
  /** Called when the server is about to stop, or its sandbox has ended by itself. */
  serverStopping?(serverId: string): void
  /** Called in the transaction that deletes the server's record. */
  serverDeleting?(row: ServerRow): void
  /**
   * Called when the record is deleted and nothing of the server runs. The server's files are removed when this
   * resolves.
   */
  serverDeleted?(serverId: string): Promise<void>
}

/** Notifies many listeners, in the order in which they were added. */
export class ServerLifecycleListeners implements Required<ServerLifecycleListener> {
  readonly #listeners: ServerLifecycleListener[]

  constructor(listeners: readonly ServerLifecycleListener[] = []) {
    this.#listeners = [...listeners]
  }

  /** Adds a listener. */
  add(listener: ServerLifecycleListener): void {
    this.#listeners.push(listener)
  }

  serverStarted(serverId: string): void {
    for (const listener of this.#listeners) listener.serverStarted?.(serverId)
  }

  /** Notifies all, even if some fail: the server stops all the same. Returns their failures. */
  serverStopping(serverId: string): unknown[] {
    return this.#listeners.flatMap((listener) => {
      try {
        const failures = listener.serverStopping?.(serverId) as unknown
        return Array.isArray(failures) ? failures : []
      } catch (error) {
        return [error]
      }
    })
  }

  serverDeleting(row: ServerRow): void {
    for (const listener of this.#listeners) listener.serverDeleting?.(row)
  }

  async serverDeleted(serverId: string): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.serverDeleted?.(serverId)))
  }
}

/** The events that load a listener, if their function returns true. Other events reach it only if it is loaded. */
interface LoadingEvents {
  serverStarted?: (serverId: string) => boolean
  serverDeleted?: (serverId: string) => boolean
}

/** Returns a listener that forwards events to one that is loaded on first use. */
export function lazyListener<T>(
  lazy: Lazy<T>,
  listenerOf: (value: T) => ServerLifecycleListener,
  loads: LoadingEvents = {},
): ServerLifecycleListener {
  const loaded = (): ServerLifecycleListener | undefined => lazy.loaded && listenerOf(lazy.loaded)
  const load = async (): Promise<ServerLifecycleListener> => listenerOf(await lazy.get())
  return {
    serverStarted(serverId) {
      const listener = loaded()
      if (listener) listener.serverStarted?.(serverId)
      else if (loads.serverStarted?.(serverId)) void load().then((late) => late.serverStarted?.(serverId))
    },
    serverStopping: (serverId) => loaded()?.serverStopping?.(serverId),
    serverDeleting: (row) => loaded()?.serverDeleting?.(row),
    async serverDeleted(serverId) {
      const listener = loaded() ?? (loads.serverDeleted?.(serverId) ? await load() : undefined)
      await listener?.serverDeleted?.(serverId)
    },
  }
}
