import type { Sandbox } from '../compute/driver.ts'
import type { Workspace } from '../compute/workspace.ts'

/** The servers that apps run on: what hosting needs to know and do about them. */
export interface AppServers {
  /** Returns the sandbox of a running server. */
  sandbox(serverId: string): Sandbox | undefined
  /** Returns the files of a server, running or not; undefined if there is no such server. */
  findWorkspace(serverId: string): Workspace | undefined
  /** Reports whether the server sleeps. */
  isSleeping(serverId: string): boolean
  /** Keeps the server in use until the returned function is called: it does not go to sleep. Wakes nothing. */
  hold(serverId: string): () => void
}
