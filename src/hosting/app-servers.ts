import type { Sandbox } from '../compute/sandbox.ts'
import type { Workspace } from '../compute/workspace.ts'

/** The servers that apps run on, as far as hosting uses them. */
export interface AppServers {
  /** Returns the sandbox of a running server. */
  sandbox(serverId: string): Sandbox | undefined
  /** Returns the files of a server, running or not; undefined if there is no such server. */
  findWorkspace(serverId: string): Workspace | undefined
  /** Reports whether a server sleeps. */
  isSleeping(serverId: string): boolean
  /** Keeps a server from sleeping until the returned function is called. Does not wake it. */
  hold(serverId: string): () => void
}
