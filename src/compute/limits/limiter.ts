import type { Enforced, Limits } from '../driver.ts'
import type { SandboxdConfiguration } from '../sandboxd/protocol.ts'

/** What holds one server's processes. */
export interface LimitGroup {
  /**
   * What to put before a command line so that its process is in the group from the first moment, with
   * all that it starts. A process that enters by itself does so at once; one that is moved by another
   * waits 10 ms for the kernel.
   */
  readonly enter: readonly string[]
  /** The processes in it, wherever they went; none where the mechanism does not know. */
  pids(): number[]
  /** How often the kernel ended a process of the group for want of memory. */
  memoryKills(): number
  /** Removes it; its processes have ended. */
  close(): Promise<void>
  /** What is left to sandboxd to keep. */
  readonly sandboxd: Pick<SandboxdConfiguration, 'watch' | 'rlimits'>
}

/** One way to hold servers to their limits, as strong as this machine allows. */
export interface Limiter {
  /** What it really enforces. */
  readonly enforced: Pick<Enforced, 'cpu' | 'memory' | 'processes'>
  /** Makes the group of one server. */
  openGroup(serverId: string, limits: Limits): LimitGroup
  /** Ends what a berth that was killed left in the groups of these servers, and removes the groups. */
  sweep(serverIds: readonly string[]): Promise<void>
}
