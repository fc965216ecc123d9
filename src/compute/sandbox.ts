import type { DialedConnection, DialHandlers, LoopbackHost } from './dialed-connection.ts'
import type { ExecCommand, Execution, TerminalCommand, TerminalExecution } from './execution.ts'
import type { ToolName } from './local/toolchain-kinds.ts'
import type { Toolchain } from './local/toolchains.ts'
import type { OutboundControl } from './outbound-control.ts'
import type { ProcessSignal, ServerConsumption, ServerProcess, SignalOutcome } from './server-process.ts'

/** A running server: one process tree that takes commands until it is stopped. */
export interface Sandbox {
  /**
   * Starts `sh -c command`. The result resolves through `exit`, output is passed to `command.onOutput`. Throws
   * `ComputeError` if the sandbox is gone or refuses.
   */
  exec(command: ExecCommand): Execution

  /**
   * Starts `sh -c command` on a new terminal. Environment (except TERM), limits and cleanup are those of `exec`.
   * Throws `ComputeError` as `exec` does.
   */
  terminal(command: TerminalCommand): TerminalExecution

  /**
   * Returns every process that commands have started and that runs, as programs of the server see them. Takes 250 ms
   * if nobody has asked within the last 30 s. The server itself says it, so nothing may depend on its truth. Throws
   * `ComputeError`.
   */
  processes(): Promise<ServerProcess[]>

  /**
   * Sends a signal to one of these processes, and waits up to a second for its end. Never signals the sandbox's own
   * processes. Throws `ComputeError`.
   */
  signal(pid: number, name: ProcessSignal): Promise<SignalOutcome>

  /** Measures what the server uses now. Throws `ComputeError`. */
  consumption(): Promise<ServerConsumption>

  /**
   * Stops (SIGSTOP) every process that commands have started, so the files do not change, until the returned function
   * is called. Commands that are asked for meanwhile begin then. Processes that were stopped before stay stopped.
   */
  pause(): Promise<() => void>

  /**
   * Opens a TCP connection to a port inside the server; resolves when it is open, after the call of
   * `handlers.opened`. Rejects with `DialRefused` if nothing listens there, or with `ComputeError`; then no handler is
   * called.
   */
  dial(port: number, host: LoopbackHost, handlers: DialHandlers): Promise<DialedConnection>

  /**
   * The network whose ports `dial` reaches: `own` if the server has its own, with all ports free for it; `shared` if
   * it shares this machine's loopback with berth and other programs.
   */
  readonly network: 'own' | 'shared'

  /**
   * Makes a port of this machine's loopback, at which berth listens, reachable at the same port of the server's own
   * network. Does nothing if the network is shared. May be called again. Throws `ComputeError` if a program of the
   * server has the port.
   */
  forward(port: number): void

  /** Ends every process of the server and waits until none is left. Calling it again is harmless. */
  stop(): Promise<void>

  /** Whether the sandbox accepts no more commands because it is stopping or gone. */
  readonly ending: boolean

  /**
   * Absolute path, inside the sandbox, of the directory with berth's own tools: `bin`, which is the last entry of
   * PATH, and settings for package managers. Isolated commands cannot change it.
   */
  readonly tools: string

  /**
   * Returns all versions of a tool that commands see, the default first, then the newest first; null if only the sandbox itself can say it, as
   * one that is elsewhere. A version says that its files are there, not that it runs.
   */
  toolchains(tool: ToolName): Promise<readonly Toolchain[] | null>

  /** Absolute path of the workspace as commands see it; it is their home directory. */
  readonly home: string

  /**
   * Absolute path, as commands see it, of the directory for the caches of package managers and compilers. It is in no
   * listing and no snapshot, counts as the server's storage, and is emptied when that is full.
   */
  readonly caches: string

  /** Resolves when the sandbox has ended: stopped, killed from inside, or out of memory. */
  readonly exited: Promise<{ reason: string }>

  /** Whether commands can make no Unix sockets. Undefined if that is not known. */
  readonly refusesUnixSockets?: boolean

  /** Controls what leaves the server's own network; null if it shares this machine's. */
  readonly outboundControl: OutboundControl | null

  /** Causes faults in this sandbox on purpose. */
  readonly faultInjection: FaultInjection
}

/** Absolute paths of a sandbox's directories as commands see them. */
export type SandboxPaths = Pick<Sandbox, 'tools' | 'home' | 'caches'>

/** Opens connections to the ports of one server. */
export type Dialer = Pick<Sandbox, 'dial'>

/** Causes faults in a running server, by the same means by which they occur naturally. */
export interface FaultInjection {
  /** Kills (SIGKILL) the sandbox, as a crash would; `exited` resolves. */
  crash(): void
  /** Stops (SIGSTOP) every process that commands have started. Later processes run. Commands can still be ended. */
  freeze(): Promise<void>
  /** Lets them go on (SIGCONT). */
  thaw(): void
  /**
   * Makes the storage count as full, or by its limit again. While it is full, the disk watch ends processes as soon
   * as the files grow. Resolves when the change is in effect.
   */
  fillStorage(full: boolean): Promise<void>
  /** The server's memory limit in bytes and the mechanism that enforces it; `none` if nothing does. */
  readonly memory: { readonly limit: number; readonly enforcedBy: string }
  /** The server's storage limit in bytes. */
  readonly storage: { readonly limit: number }
}
