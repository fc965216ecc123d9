import { existsSync, statSync } from 'node:fs'
import { LONGEST_TIMER_MS, within } from '../../runtime/wait.ts'
import { processes as system } from '../../system/processes.ts'
import type { Libc, Pty, PtyCalls } from '../../system/system.ts'
import {
  commandMarker,
  endOfGrace,
  findFamily,
  GRACE_MS,
  HANG_UP_MS,
  listDescendants,
  MARKER_NAME,
  request,
  terminate,
} from '../processes.ts'
import { PACKAGE_VARIABLES, type TerminalSize } from '../sandbox.ts'
import { InputPipe } from './input-pipe.ts'
import { Credit, OutputBatcher, OutputPump, WIDE_PIPE } from './output.ts'
import { type ExitReport, type SandboxdConfiguration, type SpawnRequest, WINDOW } from './protocol.ts'
import { MemoryFile } from './script.ts'
import { type CommandStart, type Started, startOnPipes, startOnTerminal } from './start.ts'
import { type CommandTerminal, TERMINAL_TYPE } from './terminal.ts'

/** Milliseconds after the process's end in which its pipes may still deliver. */
const DRAIN_MS = 100

/** The same for a terminal, whose output passes through a kernel task that a very busy machine may delay. */
const TERMINAL_DRAIN_MS = 1_000

/**
 * Milliseconds in which most commands end. Until then nothing is read: the output waits in the pipe and is read at
 * once, because setting up streams would cost as much as the command.
 */
const QUICK_MS = 3

/** Printed if the program that gives a command its terminal is missing. */
const NO_SETSID =
  'Ctrl-C and job control do not work on this terminal: setsid is missing. Install util-linux on this machine.'

/** What a command needs from sandboxd. */
export interface CommandContext {
  libc: Libc
  configuration: SandboxdConfiguration
  /** The terminal of a command that asks for one. */
  pty: { pty: Pty; calls: PtyCalls } | null
  /** Marks the next process that starts as the one to go first when memory runs out. */
  withOomScore<T>(spawn: () => T): T
  output(stream: 'stdout' | 'stderr', data: Uint8Array): void
  /** Called when its terminal or the pipe of its input has taken bytes. */
  typed(bytes: number): void
  /** Called when the command runs. */
  started(pid: number): void
}

/** One running `sh -c` command, with everything it starts. */
export class Command {
  readonly #context: CommandContext
  readonly #request: SpawnRequest
  readonly #credit = new Credit(WINDOW)
  /** All that this command starts carries this value in its environment. */
  readonly marker: string
  #stdin: MemoryFile | null = null
  #inputPipe: InputPipe | null = null
  #terminal: CommandTerminal | null = null
  #batcher: OutputBatcher | null = null
  #pid: number | null = null
  #pumps: readonly OutputPump[] = []
  #ending: Promise<void> | null = null
  #graceEnds = Number.POSITIVE_INFINITY
  readonly #abandoned = Promise.withResolvers<number>()
  #cancelled = false
  #timedOut = false

  constructor(id: number, request: SpawnRequest, context: CommandContext) {
    this.#request = request
    this.#context = context
    this.marker = commandMarker(context.configuration.marker, id)
    if (request.stdin === 'file') this.#stdin = new MemoryFile(context.libc)
  }

  /** The shell's pid once it runs. */
  get pid(): number | null {
    return this.#pid
  }

  /** Whether its output waits for berth. */
  get isStalled(): boolean {
    return this.#pumps.some(({ stalled }) => stalled)
  }

  /** Adds bytes to standard input; they are kept until the command starts. */
  write(data: Uint8Array): void {
    this.#stdin?.append(data)
  }

  /** Types on the command's terminal, or writes to the pipe of its standard input. */
  type(data: Uint8Array): void {
    this.#terminal?.write(data)
    this.#inputPipe?.write(data)
  }

  /** Ends the standard input of a command that reads from a pipe. */
  endInput(): void {
    this.#inputPipe?.end()
  }

  /** Sets the size of the command's terminal. */
  resize(size: TerminalSize): void {
    this.#terminal?.resize(size)
  }

  /** Tells everything that the command has started that its terminal is gone, then ends what is left. */
  hangUp(): void {
    if (this.#pid === null) this.cancel(GRACE_MS)
    else this.#ending ??= this.#hangUp()
  }

  async #hangUp(): Promise<void> {
    const find = (): number[] => this.#findFamily()
    await request(find, 'SIGHUP', endOfGrace(HANG_UP_MS))
    await terminate(find)
  }

  /** More output may be sent. */
  credit(bytes: number): void {
    this.#credit.add(bytes)
  }

  /** Ends the command and everything it started, after `graceMs` milliseconds to end by itself. */
  cancel(graceMs: number): void {
    this.#cancelled = true
    this.#end(graceMs)
  }

  /** Runs the command to its end. Throws `SpawnError`. */
  async run(): Promise<ExitReport> {
    try {
      return await this.#run()
    } finally {
      this.#inputPipe?.discard()
    }
  }

  async #run(): Promise<ExitReport> {
    if (this.#cancelled) return { exitCode: 143, timedOut: false, truncated: false }
    const { process, pumps, terminal } = this.#spawn()
    this.#pid = process.pid
    this.#pumps = pumps
    system.note(process.pid)
    this.#terminal = terminal
    this.#context.started(process.pid)
    const timer = this.#limitTime()
    const quick = terminal === null && (await within(QUICK_MS, process.exited, null)) !== null
    const open = quick ? pumps.filter((pump) => !pump.takeEnd()) : pumps
    const drained = Promise.all(open.map((pump) => pump.run()))
    const exitCode = await Promise.race([process.exited, this.#abandoned.promise])
    clearTimeout(timer)
    if (this.#request.endBackground) this.#end(GRACE_MS)
    await this.#ending
    terminal?.release()
    if (open.length > 0) await drain(drained, open, terminal === null ? DRAIN_MS : TERMINAL_DRAIN_MS)
    this.#batcher?.flush()
    return { exitCode, timedOut: this.#timedOut, truncated: pumps.some((pump) => pump.truncated) }
  }

  #limitTime(): Timer | undefined {
    const { timeoutMs } = this.#request
    if (timeoutMs === null) return undefined
    const expire = (): void => {
      this.#timedOut = true
      this.#end(GRACE_MS)
    }
    return setTimeout(expire, Math.min(timeoutMs, LONGEST_TIMER_MS))
  }

  #end(graceMs: number): void {
    if (this.#pid === null) return
    this.#graceEnds = Math.min(this.#graceEnds, performance.now() + graceMs)
    if (this.#ending !== null) return
    this.#ending = terminate(
      () => this.#findFamily(),
      () => this.#graceEnds,
    )
    // Only a process that may not be signalled (setuid) or cannot act on it is still there after that.
    void this.#ending.then(() => setTimeout(() => this.#abandoned.resolve(137), DRAIN_MS))
  }

  /** Lists everything that the command has started, wherever it runs now. */
  #findFamily(): number[] {
    const pid = this.#pid
    if (pid === null) return []
    const family = { roots: [pid], sessions: [pid], marker: this.marker, except: [] }
    return findFamily(family, listDescendants(process.pid))
  }

  #spawn(): Started {
    const { libc, pty } = this.#context
    const { command, terminal } = this.#request
    const taken = (bytes: number): void => this.#context.typed(bytes)
    if (this.#request.stdin === 'pipe') this.#inputPipe = new InputPipe(libc, taken)
    const stdin = this.#inputPipe ?? this.#stdin
    this.#stdin = null
    const options: CommandStart = {
      libc,
      command,
      stdin,
      pump: (fd, stream) => this.#pump(fd, stream),
      spawn: (argv, stdio, newSession) => this.#spawnProcess(argv, stdio, newSession),
    }
    if (terminal === null || pty === null) return startOnPipes(options)
    const control = pty.calls.control(pty.pty.master, this.#context.configuration.env.PATH ?? '')
    if (control === null) this.#printNote(NO_SETSID)
    return startOnTerminal({ ...options, ...pty, size: terminal, control, typed: taken })
  }

  #spawnProcess(argv: string[], stdio: Array<number | 'ignore'>, detached: boolean): Bun.Subprocess {
    const { configuration, withOomScore } = this.#context
    const { cwd, env, terminal } = this.#request
    const type = terminal === null ? {} : { TERM: TERMINAL_TYPE }
    const all: Record<string, string> = { ...configuration.env, ...type, ...env }
    const { [MARKER_NAME]: _, ...given } = all
    const dir = cwd === '' ? configuration.workspace : `${configuration.workspace}/${cwd}`
    try {
      return withOomScore(() =>
        Bun.spawn(argv, {
          cwd: dir,
          // The marker first: it is found however much follows.
          env: { [MARKER_NAME]: this.marker, ...goVariables(given), ...given },
          stdio: stdio as ['ignore', number, number],
          detached,
        }),
      )
    } catch (error) {
      if (statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw error
      throw new Error(`The working directory "${cwd}" does not exist.`, { cause: error })
    }
  }

  #pump(fd: number, stream: 'stdout' | 'stderr'): OutputPump {
    const send = (data: Uint8Array): void => this.#context.output(stream, data)
    if (this.#request.terminal === null) {
      const widen = (pipe: number): void => this.#context.libc.widen(pipe, WIDE_PIPE)
      return new OutputPump(fd, this.#credit, this.#request.outputLimit, send, widen)
    }
    const batcher = new OutputBatcher(send)
    this.#batcher = batcher
    return new OutputPump(fd, this.#credit, this.#request.outputLimit, (data) => batcher.add(data))
  }

  /** Prints a line from berth itself, before the command has printed anything. */
  #printNote(message: string): void {
    const bytes = new TextEncoder().encode(`berth: ${message}\r\n`)
    this.#context.output('stdout', bytes.subarray(0, this.#credit.take(bytes.length)))
  }
}

/**
 * Returns what gives Go another directory than `~/go` where that is a module. Go takes it for its own unless a variable says
 * otherwise, and older ones, such as 1.19, refuse to work then.
 */
function goVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  const { HOME, GOPATH, [PACKAGE_VARIABLES.caches]: caches } = env
  if (GOPATH || caches === undefined || !existsSync(`${HOME}/go/go.mod`)) return {}
  return { GOPATH: `${caches}/go`, GOBIN: `${HOME}/go/bin` }
}

/**
 * Waits for the streams to end, but not for a background child that keeps them open.
 *
 * @param forMs milliseconds to wait for the end
 */
async function drain(drained: Promise<unknown>, pumps: readonly OutputPump[], forMs: number): Promise<void> {
  for (const pump of pumps) pump.expectEnd()
  for (;;) {
    const over = await Promise.race([drained.then(() => true), Bun.sleep(forMs).then(() => false)])
    if (over) return
    if (pumps.some((pump) => pump.stalled)) continue
    for (const pump of pumps) pump.discard()
    return
  }
}
