import type { Enforced, Limits } from '../driver.ts'
import type { SandboxdConfiguration } from '../sandboxd/protocol.ts'

/** What the kernel counts of a group; null where it does not. */
export interface GroupUsage {
  /** Milliseconds on a processor since the group was made. */
  readonly cpuMs: number | null
  /** Without the part of the file cache that it would give up first. */
  readonly memoryBytes: number | null
  /** Processes and threads, berth's own in the sandbox included. */
  readonly threads: number | null
}

/** The usage of a group of which the kernel counts nothing. */
export const NOT_COUNTED: GroupUsage = { cpuMs: null, memoryBytes: null, threads: null }

/** Limits one server's processes. */
export interface LimitGroup {
  /**
   * Command prefix that puts a process into the group before it starts anything. A process that enters by itself does
   * so at once; one that is moved by another waits 10 ms for the kernel.
   */
  readonly enter: readonly string[]
  /** Variables by which programs that read no control group learn the limits. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Absolute paths of the control groups that its processes are in, including those that left their parent; none if the
   * mechanism has none.
   */
  readonly directories: readonly string[]
  /** Returns what the kernel counts of the group; null where it does not. */
  usage(): GroupUsage
  /** Returns how often the kernel ended a process of the group for lack of memory. */
  memoryKills(): number
  /** Removes it; its processes have ended. */
  close(): Promise<void>
  /** The limits that sandboxd has to enforce. */
  readonly sandboxd: Pick<SandboxdConfiguration, 'watch' | 'rlimits'>
}

/** A control group that programs read their limits from. */
export interface ShownGroup {
  /** Absolute path of its directory on this machine. */
  readonly dir: string
  /** Absolute path at which programs look for it. */
  readonly path: string
}

/** One way to hold servers to their limits, as strong as this machine allows. */
export interface Limiter {
  /** What this limiter really enforces. */
  readonly enforced: Pick<Enforced, 'cpu' | 'memory' | 'processes'>
  /** Returns the control groups that a server will have, and where its programs look for them. */
  shownGroups(serverId: string): readonly ShownGroup[]
  /**
   * Makes the group of one server.
   *
   * @param hasOwnUser whether its processes have a user of the kernel's own, see `ServerUsers`
   */
  openGroup(serverId: string, limits: Limits, hasOwnUser?: boolean): LimitGroup
  /** Ends what a killed berth left in these servers' groups, and removes the groups. */
  sweep(serverIds: readonly string[]): Promise<void>
}
