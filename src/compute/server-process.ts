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
