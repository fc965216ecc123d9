import type { Isolation } from '../config/config.ts'
import type { Workspace } from './workspace.ts'

/** What one server may use. Values come from its tier. */
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
 * What really holds on this machine, never more, in words for people and programs:
 * `none` where nothing enforces it, else the mechanism (`cgroup`, `watchdog`, `rlimit`, …).
 */
export interface Enforced {
  isolation: Isolation
  cpu: string
  memory: string
  processes: string
  disk: string
  network: string
}

/** Outcome of a driver's probe: it ran the real thing once, it did not read settings. */
export type Probe =
  | {
      available: true
      /** What it really holds servers to: found out when it is first asked for, which a start need not wait for. */
      enforced(): Promise<Enforced>
      /** What is weaker here than the tier's name promises, each in words for a person. */
      notes?: readonly string[]
    }
  | {
      available: false
      /** One sentence: what is missing or refused. */
      reason: string
      /** One sentence: what a person can do about it. */
      remedy: string
    }

/**
 * Names what a driver made for one server, as plain JSON kept in the database, so that a restarted
 * berth can find, use, end or remove it. Only drivers look inside.
 */
export type Handle = { readonly kind: string; readonly [key: string]: unknown }

/** Where servers' code runs and their files lie. */
export interface Compute {
  /** Makes an empty workspace for a new server. */
  create(serverId: string): Promise<Handle>

  /** Starts the server's sandbox; resolves when it takes commands. Throws `ComputeError`. */
  start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox>

  /** The server's files, whether it runs or not. */
  workspace(handle: Handle): Workspace

  /** Ends whatever an earlier berth left running of these servers. */
  reap(handles: Handle[]): Promise<void>

  /** Removes all that belongs to the server; its sandbox is stopped already. Succeeds when nothing is there. */
  destroy(handle: Handle): Promise<void>

  /** Removes what no server of the list owns: directories whose deletion a crash cut short. */
  sweep(known: Handle[]): Promise<void>

  /**
   * Whether a process on a server has the other end of a connection to this process, or hides whose it is. False where
   * the machine cannot tell. The driver looks itself, it does not ask the sandbox.
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
   * Starts `sh -c command`. The result of the whole stands in `exit`; output arrives through
   * `command.onOutput`. Throws `ComputeError` when the sandbox is gone or refuses.
   */
  exec(command: ExecCommand): Execution

  /**
   * Starts `sh -c command` on a terminal of its own, as `exec` does on pipes: in the same environment, but for TERM,
   * under the same limits, and with the same end of all that it started. Throws `ComputeError` as `exec` does.
   */
  terminal(command: TerminalCommand): TerminalExecution

  /**
   * Has every process that commands have started stand still, so that its files do too, until the returned function is
   * called. Those that stood still before are left so.
   */
  pause(): Promise<() => void>

  /** Ends every process of the server and waits until none is left. Calling it again is harmless. */
  stop(): Promise<void>

  /** Whether it takes no commands any more: it is being stopped, or gone. */
  readonly ending: boolean

  /**
   * Absolute path, as commands see it, of the directory with the tools that berth brings along: `bin`, which stands at the
   * end of their PATH, and settings for package managers. They cannot change it where they are isolated.
   */
  readonly tools: string

  /** Absolute path of the workspace as commands see it; it is their home directory. */
  readonly home: string

  /** Resolves when the sandbox is gone: stopped, killed from inside, or out of memory. */
  readonly exited: Promise<{ reason: string }>

  /** What can be made to go wrong in it. */
  readonly faultInjection: FaultInjection
}

/** What can be made to go wrong in a running server, by the means by which it goes wrong by itself. */
export interface FaultInjection {
  /** Kills (SIGKILL) the sandbox, as if it had crashed; `exited` follows. */
  crash(): void
  /**
   * Stops (SIGSTOP) every process that commands have started; what is started later is not stopped. Whatever ends
   * commands can still do so.
   */
  freeze(): Promise<void>
  /** Lets them go on (SIGCONT). */
  thaw(): void
  /**
   * Has the storage count as full, or as what it is again: what watches over it then ends processes as soon as the files
   * grow. Resolves when that holds.
   */
  fillStorage(full: boolean): Promise<void>
  /** Bytes of memory that the server may have, and what sees to it; `none` where nothing does. */
  readonly memory: { readonly limit: number; readonly enforcedBy: string }
  /** Bytes of files that it may have. */
  readonly storage: { readonly limit: number }
}

/** One shell command. */
export interface ExecCommand {
  command: string
  /** Working directory, relative to the workspace. */
  cwd?: string
  /** Variables on top of the clean base environment. */
  env?: Record<string, string>
  /** Bytes for standard input; without it standard input is empty. */
  stdin?: Uint8Array
  /** The command and all that it started is ended after this many milliseconds; null for never. */
  timeoutMs: number | null
  /**
   * What becomes of processes that it started and that outlive it: they stay until the server stops (the
   * default), or end with it.
   */
  background?: 'stays' | 'ends'
  /** Bytes kept of each stream; the rest is dropped and `truncated` set. Without it nothing is dropped. */
  outputLimit?: number
  /** Receives output as it comes, in order. While a returned promise is pending the command's pipe is not read on. */
  onOutput(stream: 'stdout' | 'stderr', data: Uint8Array): void | Promise<void>
}

/** Columns and rows of characters, 1 to 10,000 of each. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** One shell command on a terminal. */
export interface TerminalCommand
  extends Pick<ExecCommand, 'command' | 'cwd' | 'env' | 'timeoutMs' | 'background'> {
  readonly size: TerminalSize
  /**
   * Bytes for standard input in place of the terminal, which stays within reach as /dev/tty. A terminal cuts lines
   * of more than 4,095 bytes, and has no end.
   */
  stdin?: Uint8Array
  /** Receives what the terminal shows, as `ExecCommand.onOutput` does; lines end with CR LF. */
  onOutput(data: Uint8Array): void | Promise<void>
}

/** A TCP connection that somebody has opened to this process. */
export interface Connection {
  /** The address that it comes from, as IPv4 or IPv6. */
  readonly remoteAddress: string
  readonly remotePort: number
  /** The port that it came to. */
  readonly localPort: number
}

/** A TCP port of this machine's loopback. */
export interface LoopbackAddress {
  readonly host: '127.0.0.1' | '::1'
  readonly port: number
}

/** A command under way. */
export interface Execution {
  /** Resolves when the command's process has exited and its output is delivered; rejects with `ComputeError`. */
  readonly exit: Promise<ExecExit>
  /**
   * Ends the command and all that it started: SIGTERM, so many milliseconds of grace (a second without it),
   * SIGKILL. Calling it again can make the grace shorter, not longer. Never throws.
   */
  cancel(graceMs?: number): void
  /**
   * The places, ports ascending, where the command's processes answer now whoever connects to 127.0.0.1 or ::1: a
   * port that they have on one of these alone may be another program's on the other. The driver looks itself, it does
   * not ask the sandbox. Empty where the command is over, null where nothing can be seen. Never throws.
   */
  listening(): Promise<readonly LoopbackAddress[] | null>
}

/** A command on a terminal under way. Once it is over, what is done to its terminal has no effect. */
export interface TerminalExecution extends Execution {
  /**
   * Types on its terminal; byte 3 is Ctrl-C, byte 4 on an empty line the end of input. Of what no program has read a
   * mebibyte is kept, the rest is lost.
   */
  write(data: Uint8Array): void
  /** Gives its terminal another size, which programs learn by SIGWINCH. */
  resize(size: TerminalSize): void
}

/** How a command ended. */
export interface ExecExit {
  /** The exit status; 128+n where signal n ended it. */
  exitCode: number
  timedOut: boolean
  truncated: boolean
}

/** The compute backend failed: not the caller's fault, answered as 502 `compute_backend_error`. */
export class ComputeError extends Error {
  override readonly name = 'ComputeError'
}
