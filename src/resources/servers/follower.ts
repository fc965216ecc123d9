import type { Sandbox } from '../../compute/driver.ts'
import type { ServerRow } from './table.ts'

/** What lives with servers: apps that run while they run, and go when they go. */
export interface ServerFollower {
  /** The server's sandbox has come up. Called in the server's turn, which does not wait for what follows. */
  started(row: ServerRow, sandbox: Sandbox): void
  /** The server is about to stop, or its sandbox has ended by itself. */
  stopping(serverId: string): void
  /** The server's record goes with the transaction that this is called in. */
  removing(row: ServerRow): void
  /** The server is gone; its files go when this resolves. */
  removed(serverId: string): Promise<void>
}

/** All that follow servers; each is told of everything. */
export class ServerFollowers implements ServerFollower {
  readonly #followers: ServerFollower[] = []

  /** Tells a further one from now on. */
  add(follower: ServerFollower): void {
    this.#followers.push(follower)
  }

  started(row: ServerRow, sandbox: Sandbox): void {
    for (const follower of this.#followers) follower.started(row, sandbox)
  }

  stopping(serverId: string): void {
    for (const follower of this.#followers) follower.stopping(serverId)
  }

  removing(row: ServerRow): void {
    for (const follower of this.#followers) follower.removing(row)
  }

  async removed(serverId: string): Promise<void> {
    await Promise.all(this.#followers.map((follower) => follower.removed(serverId)))
  }
}
