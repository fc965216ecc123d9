import type { Isolation } from '../config/config.ts'
import type { Connection } from '../runtime/connection.ts'
import type { OutboundControl } from './outbound-control.ts'
import type {
  CommandOwner,
  ProcessSignal,
  ServerConsumption,
  ServerProcess,
  SignalOutcome,
} from './server-process.ts'
import type { Workspace } from './workspace.ts'

/** What one server may use. The server's tier sets the values. */
export interface Limits {
  /** Processor cores, may be fractional. */
  cpus: number
  /** Bytes of memory for all its processes together. */
  memoryBytes: number
  /** Processes and threads at a time. */
  processes: number
  /** Bytes of files in its workspace. */
  storageBytes: number
}

/**
 * The limits that really hold on this machine, named by mechanism (`cgroup`, `watchdog`, `rlimit`, …); `none` if
 * nothing enforces one.
 */
export interface Enforced {
  isolation: Isolation
  cpu: string
  memory: string
  processes: string
  disk: string
  network: string
  /** Whom the kernel takes a server's processes for. */
  user: string
}

/** Outcome of a driver's probe: it ran the real thing once, it did not read settings. */
export type Probe =
  | {
      available: true
      /** Whether each server has its own network, or shares this machine's. */
      network: 'own' | 'shared'
      /**
       * Returns the limits that hold under this driver. Finds them out at the first call, so a start need not wait
       * for it.
       */
      enforced(): Promise<Enforced>
      /** Ways in which this isolation is weaker here than its name promises, each a sentence for a person. */
      notes?: readonly string[]
    }
  | {
      available: false
      /** What is missing or refused, in one sentence. */
      reason: string
      /** What a person can do about it, in one sentence. */
      remedy: string
    }

/**
 * Identifies what a driver created for one server, as plain JSON kept in the database, so a restarted berth can find,
 * use, stop or remove it. Only drivers read its fields.
 */
export type Handle = { readonly kind: string; readonly [key: string]: unknown }

/** Runs servers' code and keeps their files. */
export interface Compute {
  /** Makes an empty workspace for a new server. */
  create(serverId: string): Promise<Handle>

  /** Starts the server's sandbox; resolves when it takes commands. Throws `ComputeError`. */
  start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox>

  /** Returns the server's files, whether it runs or not. */
  workspace(handle: Handle): Workspace

  /** Ends all processes that an earlier berth left running for these servers, or for some that have no record. */
  reap(handles: Handle[]): Promise<void>

  /**
   * Removes everything that belongs to the server, whose sandbox must be stopped. Does nothing if it is already
   * removed.
   */
  destroy(handle: Handle): Promise<void>

  /**
   * Removes everything that belongs to none of these servers, such as directories whose deletion a crash interrupted.
   */
  sweep(known: Handle[]): Promise<void>

  /**
   * Reports whether a process on a server, or one that hides who it is, has the other end of a connection to this
   * process. Returns false if the machine cannot tell. The driver inspects the system; it does not ask the sandbox.
   */
  isSentFromServer(connection: Connection): Promise<boolean>
}

/** One way to provide compute. Implementations pass the suite in test/compute/conformance.ts. */
export interface ComputeDriver extends Compute {
  readonly name: Isolation

  /** Tries the real thing once. Never throws. */
  probe(): Promise<Probe>
}

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
   * is called. Processes that were stopped before stay stopped.
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

  /** Absolute path of the workspace as commands see it; it is their home directory. */
  readonly home: string

  /** Resolves when the sandbox has ended: stopped, killed from inside, or out of memory. */
  readonly exited: Promise<{ reason: string }>

  /** Controls what leaves the server's own network; null if it shares this machine's. */
  readonly outboundControl: OutboundControl | null

  /** Causes faults in this sandbox on purpose. */
  readonly faultInjection: FaultInjection
}

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

/** One shell command. */
export interface ExecCommand {
  command: string
  /** Working directory, relative to the workspace. */
  cwd?: string
  /** Variables on top of the clean base environment. */
  env?: Record<string, string>
  /**
   * Bytes for standard input; without it standard input is empty. A stream is read as fast as the command reads. It is
   * cancelled when the command ends; if it fails, the command is cancelled.
   */
  stdin?: Uint8Array | ReadableStream<Uint8Array>
  /** Milliseconds after which the command and everything it started is ended; null for never. */
  timeoutMs: number | null
  /**
   * Whether processes that outlive the command keep running until the server stops (`stays`, the default) or end with
   * it.
   */
  background?: 'stays' | 'ends'
  /** What it is run for; without it its processes have no owner. */
  owner?: CommandOwner
  /** Bytes kept of each stream; the rest is dropped and `truncated` set. Without it nothing is dropped. */
  outputLimit?: number
  /** Receives output in order. While a returned promise is pending, the command's pipe is not read. */
  onOutput(stream: 'stdout' | 'stderr', data: Uint8Array): void | Promise<void>
}

/** Columns and rows of characters, 1 to 10,000 of each. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** One shell command on a terminal. */
export interface TerminalCommand
  extends Pick<ExecCommand, 'command' | 'cwd' | 'env' | 'timeoutMs' | 'background' | 'owner'> {
  readonly size: TerminalSize
  /**
   * Bytes for standard input instead of the terminal, which remains available as /dev/tty. Use it for long input: a
   * terminal cuts lines of more than 4,095 bytes and has no end of file.
   */
  stdin?: Uint8Array
  /** Receives the terminal's output, as `ExecCommand.onOutput` does; lines end with CR LF. */
  onOutput(data: Uint8Array): void | Promise<void>
}

/** A loopback address. A program that binds "localhost" may have chosen either. */
export type LoopbackHost = '127.0.0.1' | '::1'

/** A TCP port of the loopback interface that a server's programs see. */
export interface LoopbackAddress {
  readonly host: LoopbackHost
  readonly port: number
}

/** A connection that `Sandbox.dial` has opened. A `Bun.Socket` is one. */
export interface DialedConnection {
  /**
   * Writes the part of `bytes` that fits into the send buffer, which the caller may change afterwards.
   *
   * @returns the number of bytes written, or a negative number if the connection is gone
   */
  write(bytes: Uint8Array, offset?: number, length?: number): number
  /** Stops calls of `data`, so the peer has to wait. */
  pause(): void
  resume(): void
  /** Closes the connection after what was written. */
  end(): void
  /** Resets the connection. */
  terminate(): void
  /**
   * Begins to tell what is written from now on from what was written before, for `isUnread`.
   *
   * @returns whether that will be known; it never is without this function
   */
  watchReading?(): boolean
  /**
   * Returns whether it is certain that the peer has read nothing of what was written since `watchReading`. To be called
   * in `DialHandlers.closed`, once. It may take a second.
   */
  isUnread?(): Promise<boolean>
}

/** Receives the events of a connection that `Sandbox.dial` opens. Must not throw. */
export interface DialHandlers {
  /** Called once, first. */
  opened(connection: DialedConnection): void
  /** Receives bytes, which are the receiver's to keep. */
  data(chunk: Buffer): void
  /** Called when the send buffer, which was full, accepts bytes again. */
  drain(): void
  /** Called once, last, whichever side has closed it. @param failed whether it was reset or broke */
  closed(failed: boolean): void
}

/** Opens connections to the ports of one server. */
export type Dialer = Pick<Sandbox, 'dial'>

/** Nothing listens on a port inside a server. */
export class DialRefused extends Error {
  override readonly name = 'DialRefused'

  constructor(host: LoopbackHost, port: number, options?: ErrorOptions) {
    super(`Nothing listens on ${host}, port ${port}, of the server.`, options)
  }
}

/** A command under way. */
export interface Execution {
  /** Resolves when the command's process has exited and its output is delivered; rejects with `ComputeError`. */
  readonly exit: Promise<ExecExit>
  /**
   * Ends the command and every process it started: SIGTERM, then SIGKILL after `graceMs` milliseconds (default
   * 1,000). A second call can shorten the grace, not extend it. Never throws.
   */
  cancel(graceMs?: number): void
  /**
   * Returns the loopback addresses, by ascending port, at which the command's processes accept connections. 127.0.0.1
   * and ::1 are listed separately, because another program may have the same port on the other one. The driver
   * inspects the system; it does not ask the sandbox. Returns an empty list after the command has ended, null if
   * sockets cannot be seen. Never throws.
   */
  listening(): Promise<readonly LoopbackAddress[] | null>
}

/** A running command on a terminal. After it has ended, writing and resizing have no effect. */
export interface TerminalExecution extends Execution {
  /** Resolves when the command runs; rejects with `ComputeError` if it cannot be started, as `exit` does. */
  readonly started: Promise<void>
  /** Typed bytes that the terminal has not taken, because no program reads them. They are kept without a bound. */
  readonly unread: number
  /** Types on the terminal; byte 3 is Ctrl-C, byte 4 on an empty line is end of input. */
  write(data: Uint8Array): void
  /**
   * Tells everything that the command has started that the terminal is gone (SIGHUP), and 500 ms later ends what is
   * left, as `cancel` does. Never throws.
   */
  hangUp(): void
  /** Gives its terminal another size, which programs learn by SIGWINCH. */
  resize(size: TerminalSize): void
}

/** How a command ended. */
export interface ExecExit {
  /** The exit status; 128+n if signal n ended the command. */
  exitCode: number
  timedOut: boolean
  truncated: boolean
}

/** The compute backend failed through no fault of the caller. Becomes a 502 response with `compute_backend_error`. */
export class ComputeError extends Error {
  override readonly name = 'ComputeError'
}
