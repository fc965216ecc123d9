/** A server that runs: starts commands and terminals in it, connects to its ports, and ends it. */
import type { OutboundMode } from '../config/values.ts'
import { ExplainedError } from '../errors.ts'
import { OncePerPeriod } from '../runtime/once-per-period.ts'
import type { ToolName } from './local/toolchain-kinds.ts'
import type { Toolchain } from './local/toolchains.ts'

/**
 * Identifies what a driver created for one server, as plain JSON kept in the database, so a restarted berth can find,
 * use, stop or remove it. Only drivers read its fields.
 */
export type ServerHandle = { readonly kind: string; readonly [key: string]: unknown }

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

  /** Whether its programs are those of an image, and not this machine's; missing if not. */
  readonly hasImage?: boolean

  /** The server's handle from this start on; missing if it stays the same. */
  readonly handle?: ServerHandle | undefined

  /** Resolves when the sandbox has ended: stopped, killed from inside, or out of memory. */
  readonly exited: Promise<{ reason: string }>

  /** Whether commands can make no Unix sockets. Undefined if that is not known. */
  readonly refusesUnixSockets?: boolean

  /** Controls what leaves the server's own network; null if it shares this machine's, or another leads outside. */
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

/** Nothing listens on a port inside a server. */
export class DialRefused extends Error {
  override readonly name = 'DialRefused'

  constructor(host: LoopbackHost, port: number, options?: ErrorOptions) {
    super(`Nothing listens on ${host}, port ${port}, of the server.`, options)
  }
}

/** What a command is run for. Its processes are shown with it. */
export interface CommandOwner {
  readonly kind: 'exec' | 'terminal' | 'task' | 'build' | 'project' | 'deployment'
  /** The owner's id; null for a command of `exec` that is no execution. */
  readonly id: string | null
}

/** Signals that can be sent to a process of a server. */
export const PROCESS_SIGNALS = ['TERM', 'KILL', 'INT', 'HUP'] as const
export type ProcessSignal = (typeof PROCESS_SIGNALS)[number]

/** States of a process: on a processor or ready for one, waiting for an event, waiting for a device, stopped. */
export const PROCESS_STATES = ['running', 'sleeping', 'waiting', 'stopped'] as const
export type ProcessState = (typeof PROCESS_STATES)[number]

/** A process of a server, as programs of the server see it. */
export interface ServerProcess {
  /** Its number inside the server. */
  readonly pid: number
  readonly parentPid: number
  /** Its command line, or the name of its program in brackets if it has none; cut after 2,000 characters. */
  readonly command: string
  readonly state: ProcessState
  /** Use of processors lately; 100 is one whole processor. */
  readonly cpuPercent: number
  /** Bytes of memory that it has mapped and that are in use (resident set size). */
  readonly memoryBytes: number
  /** Milliseconds since its start. */
  readonly ageMs: number
  /** TCP ports that it listens on, ascending. */
  readonly ports: readonly number[]
  /** What started it; null if that is not known. */
  readonly owner: CommandOwner | null
}

/** What became of a signal: no such process, the process has ended, or it still runs a second later. */
export type SignalOutcome = 'missing' | 'ended' | 'running'

/** What a running server uses at one time, as it counts against its limits where the machine can tell. */
export interface ServerConsumption {
  /** Milliseconds since the start of the machine. */
  readonly at: number
  /** Milliseconds on a processor, of all its processes since its start. The difference of two looks is its use. */
  readonly cpuMs: number
  readonly memoryBytes: number
  /** Processes and threads, without berth's own. */
  readonly processes: number
}

/** What a server with a network of its own may reach. */
export interface OutboundSettings {
  readonly mode: OutboundMode
  /** Host patterns: what `list` allows, and what `public` allows in addition to the internet. */
  readonly hosts: readonly string[]
}

/** A refused destination. */
export interface RefusedDestination {
  /** A name or an address, with its port if it was a connection, such as `10.0.0.5:5432`. */
  readonly destination: string
  /** Why it is refused, a sentence without its end. */
  readonly reason: string
  /** What a person can do about it, in sentences. */
  readonly remedy: string
  /** True if berth let it pass, and the connection failed. Only of programs that use berth's proxy: the others see why. */
  readonly failed?: true
}

/** Disturbs what passes between a server and the outside. */
export interface NetworkFault {
  /** Nothing passes: names are not resolved, connections break off. */
  readonly offline?: boolean
  /** The names do not exist, and connections to them are refused. */
  readonly refused?: boolean
  /** Milliseconds by which responses arrive later, those to a connection's opening included. */
  readonly latencyMs?: number
  /** Milliseconds by which that varies, up and down. */
  readonly jitterMs?: number
  /** Share of the packets that are lost, 0 to 1. */
  readonly loss?: number
  /** Host patterns; the fault is for these. Without them it is for everything outside. */
  readonly hosts?: readonly string[]
  /** The same seed makes the same choices for the same sequence of packets. */
  readonly seed: number
}

/** Controls what leaves a server's own network. */
export interface OutboundControl {
  /** Reports whether the settings hold: whether nothing else leads outside, as far as that can be tried. */
  enforced(): Promise<boolean>

  /** Changes what the server may reach; resolves when that is in effect, for its open connections too. */
  apply(settings: OutboundSettings): Promise<void>

  /** Begins a fault in place of another, or ends it with null; resolves when that is in effect. */
  disturb(fault: NetworkFault | null): Promise<void>

  /** The destinations that were refused since the last change of the settings, the newest last, 100 at most. */
  readonly refused: readonly RefusedDestination[]

  /**
   * Calls `listener` for each refused destination, and for each whose connection failed by the proxy: at most ten times a second
   * for each, and 200 times a second.
   *
   * @returns a function that unsubscribes
   */
  subscribe(listener: (refused: RefusedDestination) => void): () => void

  /** Resolves when the listeners have been called for everything that was refused before. */
  reported(): Promise<void>
}

/**
 * Destinations that are collected for one command, or noted in one log; a program can try any number.
 * @bound program
 */
const MOST_NOTED = 20

/** Collects what a server is refused until `end`, each destination once and 20 of them. */
export class RefusalCollector implements Disposable {
  readonly #control: OutboundControl | null
  readonly #refused: RefusedDestination[] = []
  readonly #unsubscribe: () => void

  /**
   * @param control null for a server that is refused nothing
   * @param onRefused called for each destination
   */
  constructor(control: OutboundControl | null, onRefused: (refused: RefusedDestination) => void = () => {}) {
    this.#control = control
    const noted = new OncePerPeriod(Number.POSITIVE_INFINITY, MOST_NOTED)
    const subscribe = control?.subscribe((refused) => {
      if (!noted.admits(refused.destination)) return
      this.#refused.push(refused)
      onRefused(refused)
    })
    this.#unsubscribe = subscribe ?? (() => {})
  }

  /**
   * Ends, and returns what was refused.
   *
   * @param complete whether to wait for what was refused a moment ago
   */
  async end(complete: boolean): Promise<RefusedDestination[]> {
    if (complete) await this.#control?.reported()
    this[Symbol.dispose]()
    return this.#refused
  }

  [Symbol.dispose](): void {
    this.#unsubscribe()
  }
}

/** Returns a refusal or a failure as a sentence for a person, with its remedy. */
export const describeRefusal = ({ destination, reason, remedy, failed }: RefusedDestination): string =>
  `${failed ? 'berth could not open' : 'berth refused'} the server's connection to ${destination}: ${reason}. ${remedy}`

/** The variables by which the settings of package managers in a sandbox find the registries. Without them these settings are not used. */
export const PACKAGE_VARIABLES = {
  /** The npm registry's address, with a slash at the end. */
  url: 'BERTH_PACKAGES_URL',
  /** Its host and port. */
  host: 'BERTH_PACKAGES_HOST',
  /** The credential for it. */
  token: 'BERTH_PACKAGES_TOKEN',
  /** The address of the mirror of Maven Central, and which repositories it is for. */
  maven: 'BERTH_PACKAGES_MAVEN',
  mavenMirrorOf: 'BERTH_PACKAGES_MAVEN_OF',
  /** The directory of the server's caches. */
  caches: 'BERTH_PACKAGES_CACHES',
} as const

/** The compute backend failed through no fault of the caller. Becomes a 502 response with `compute_backend_error`. */
export class ComputeError extends ExplainedError {
  override readonly name = 'ComputeError'
}
