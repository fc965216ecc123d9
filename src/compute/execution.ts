import type { LoopbackAddress } from './dialed-connection.ts'
import type { CommandOwner } from './server-process.ts'

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

/** What the processes of a command do at one time. */
export interface CommandActivity {
  /**
   * The loopback addresses, by ascending port, at which they accept connections. 127.0.0.1 and ::1 are listed
   * separately, because another program may have the same port on the other one. Empty after the command has ended,
   * null if sockets cannot be seen.
   */
  readonly listening: readonly ListeningAddress[] | null
  /** Milliseconds that they and their ended children have been on a processor; 0 if that is not known. */
  readonly cpuMs: number
}

/** An address at which a process accepts connections. */
export interface ListeningAddress extends LoopbackAddress {
  /** Whether it is for a debugger, as the command lines and variables of the processes say. */
  readonly isDebugger?: true
}

/** The activity of a command that has ended. */
export const NO_ACTIVITY: CommandActivity = { listening: [], cpuMs: 0 }

/** A command under way. */
export interface Execution {
  /** Resolves when the command's process has exited and its output is delivered; rejects with `ComputeError`. */
  readonly exit: Promise<ExecExit>
  /**
   * Resolves when the command runs: to the pid of its shell as programs of the server see it; to null if it has ended
   * before. Rejects with `ComputeError` if it cannot be started.
   */
  readonly pid: Promise<number | null>
  /**
   * Ends the command and every process it started: SIGTERM, then SIGKILL after `graceMs` milliseconds (default
   * 1,000). A second call can shorten the grace, not extend it. Never throws.
   */
  cancel(graceMs?: number): void
  /**
   * Returns what the command's processes do. The driver inspects the system; it does not ask the sandbox. Never throws.
   */
  activity(): Promise<CommandActivity>
}

/** A running command on a terminal. After it has ended, writing and resizing have no effect. */
export interface TerminalExecution extends Execution {
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
