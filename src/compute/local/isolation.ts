import type { Isolation, PortRange } from '../../config/config.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { SelfCommand } from '../../runtime/self.ts'
import type { Confinement } from '../../system/system.ts'
import type { Limits } from '../driver.ts'
import type { ShownGroup } from '../limits/limiter.ts'
import { ComputeError, type OutboundSettings, type SandboxPaths } from '../sandbox.ts'
import type { Workspace } from '../workspace.ts'
import type { ProvidedNetwork } from './network/server-network.ts'
import type { SpawnPlan } from './spawn.ts'
import type { ToolName } from './toolchain-kinds.ts'
import { findToolchains, type PrintedVersions, type Toolchain } from './toolchains.ts'

/** The options of every local driver. */
export interface LocalDriverOptions {
  /** Absolute path of the data directory. */
  dataDir: string
  /** The command by which berth starts itself again. */
  self: SelfCommand
  /** The PATH that berth was started with. */
  path: string
  /** The variables that berth was started with, which say where version managers keep toolchains. */
  variables: Readonly<Record<string, string | undefined>>
  logger: Logger
  /** What servers with their own network reach until something else is set for them. */
  outbound: OutboundSettings
  /** Ports of this machine's loopback that these servers reach at the same port of their own. */
  machinePorts: readonly number[]
  /** Ports of projects, which servers with their own network reach at the same port of their own; null for none. */
  projectPorts: PortRange | null
  /**
   * Returns the URL at which commands reach berth's API, for their `BERTH_BASE_URL`; null if there is none.
   *
   * @param network whether the server has its own network
   */
  baseUrl(network: 'own' | 'shared'): string | null
  /** Returns further variables of every command of a server. */
  environment(serverId: string, paths: SandboxPaths): Readonly<Record<string, string>>
  /** Prepares a server's caches, before its first command. @param caches the files in its directory of caches */
  prepareCaches(serverId: string, caches: Workspace): Promise<void>
  /** Opens what berth provides inside a server's own network; called before the server's first command. */
  provide(serverId: string, network: ProvidedNetwork): void | Promise<void>
  /**
   * Whether commands may use Unix sockets where the isolation cannot keep them from those of the user's programs.
   */
  allowUnixSockets: boolean
  /**
   * Reaches the files under a workspace's absolute path.
   *
   * @param caches absolute path of a directory that counts as its usage
   */
  workspace(dir: string, caches?: string): Workspace
}

/** The server that a sandbox is started for. */
export interface ServerToStart {
  id: string
  /** Absolute path of the server's own directory. */
  dir: string
  /** Absolute path of its workspace. */
  workspace: string
  /** Absolute path of its directory of caches. */
  caches: string
  /** First 24 hex digits of its processes' markers. */
  marker: string
  limits: Limits
  /** Its control groups, which exist when sandboxd's process starts. */
  groups: readonly ShownGroup[]
}

/** How sandboxd's process is started, and its commands after it. */
export interface Launch extends SpawnPlan {
  /** Absolute path of the workspace as commands see it. */
  workspace: string
  /** The clean base environment of every command. */
  commandEnv: Record<string, string>
  /** Absolute path of the directory of tools as commands see it. */
  tools: string
  /** Absolute path of the directory of caches as commands see it. */
  caches: string
  /** See `Sandbox.toolchains`. */
  toolchains: ToolchainsOf
  /** What sandboxd gives up before the first command. */
  confinement: Confinement
  /** Limits the pseudo-terminals of the sandbox that a process is in, if they are its own and that is possible. */
  limitTerminals?(pid: number): Promise<void>
  /** The user of the kernel's that the sandbox has for itself; none if it has berth's. */
  user?: LaunchUser
}

/** Returns all versions of a tool that commands see. */
type ToolchainsOf = (tool: ToolName) => Promise<readonly Toolchain[]>

/** The system refuses a way to start a sandbox; another may work. */
export class LaunchRefused extends ComputeError {}

/** A user of the kernel's for one sandbox. */
interface LaunchUser {
  /** Completes the sandbox that a process is in, when sandboxd is ready and before the first command. */
  attachWorkspace(pid: number): void
  /** Gives the user back, when nothing of the sandbox runs. May be called again. */
  release(): void
  /**
   * The way to start the sandbox without such a user, if `LaunchRefused` is thrown: this machine may not permit it. Null
   * if another sandbox has started so.
   */
  readonly fallback: {
    launch(): Promise<Launch>
    /** Takes note that it has worked, unlike the other for a reason, so it is used from now on. */
    keep(reason: string): void
  } | null
}

/** Outcome of trying an isolation on this machine. */
export type IsolationProbe =
  | {
      available: true
      /** Whose network servers have. */
      network: 'own' | 'shared'
      /** Ways in which the isolation is weaker here than its name promises, each a sentence for a person. */
      notes?: string[]
    }
  | { available: false; reason: string; remedy: string }

/** One way to isolate a server's processes on this machine. */
export interface LocalIsolation {
  readonly name: Isolation
  /** Whether the sandbox has its own user namespace, and its own PID namespace, which ends with its first process. */
  readonly namespaces: boolean
  /** Whether no process of a server can leave the control group that it was started in. */
  readonly keepsGroups: boolean
  /** Tries the real thing once. Never throws. */
  probe(): Promise<IsolationProbe>
  /** Returns how to start sandboxd for a server. */
  launch(server: ServerToStart): Promise<Launch>
}

/**
 * Settings of Bun, its JavaScript engine and its allocator in sandboxd. Without the first ones it starts threads at
 * any time, and aborts if the server's processes have used up their number.
 */
export const SANDBOXD_ENVIRONMENT: Readonly<Record<string, string>> = {
  BUN_JSC_useConcurrentGC: '0',
  BUN_JSC_useConcurrentJIT: '0',
  BUN_JSC_numberOfGCMarkers: '1',
  BUN_JSC_useWarmUpMarkedBlocks: '0',
  UV_THREADPOOL_SIZE: '2',
  // Returns memory to the system without an extra thread.
  MIMALLOC_SCAVENGER: '0',
  // Collects garbage when memory is needed, not by timers that wake every idle server each second.
  BUN_GC_TIMER_DISABLE: '1',
  BUN_DISABLE_STOP_IF_NECESSARY_TIMER: '1',
}

/** Returns what finds toolchains for one server. @param sees see `selectMachineTools` */
export function toolchainsOf(options: LocalDriverOptions, sees: 'selected' | 'all'): ToolchainsOf {
  const printed: PrintedVersions = new Map()
  return (tool) => findToolchains(options, { sees, of: [tool], printed })
}

/** Returns the environment that every command has, under each isolation. */
export function baseEnvironment(
  home: string,
  user: string,
  path: string,
  tmp: string,
): Record<string, string> {
  return {
    PATH: path,
    HOME: home,
    USER: user,
    LOGNAME: user,
    SHELL: '/bin/sh',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    TMPDIR: tmp,
  }
}
