import { messageOf } from '../../runtime/error-info.ts'
import {
  ComputeError,
  type ExecCommand,
  type Execution,
  type Limits,
  type Sandbox,
  type TerminalCommand,
  type TerminalExecution,
} from '../driver.ts'
import type { LimitGroup } from '../limits/limiter.ts'
import { commandMarker, findDescendants, isStopped, type ProcessScanner, readProcess } from '../processes.ts'
import { SandboxdConnection } from '../sandboxd/connection.ts'
import type { SandboxdCommand } from '../sandboxd/execution.ts'
import { GRACE_MS, killAll, signal } from '../terminate.ts'
import { LocalFaultInjection } from './fault-injection.ts'
import type { Launch } from './isolation.ts'
import { listeningAddresses } from './ports.ts'
import { collectErrors, type Spawned, spawnWithSocket } from './spawn.ts'
import { TerminalSender } from './terminal-sender.ts'

/** Milliseconds in which sandboxd has to be ready. */
const READY_MS = 15_000

/** Milliseconds beyond the grace of its commands in which sandboxd has to end. */
const STOP_MARGIN_MS = 500

/** Milliseconds to wait for sandboxd's confirmation that no command is about to begin, before pausing anyway. */
const PAUSE_PATIENCE_MS = 250

/** Most rounds of pausing processes that started meanwhile. */
const PAUSE_ROUNDS = 50

/** The options of `LocalSandbox.start`. */
export interface SandboxStart {
  launch: Launch
  /** First 24 hex digits of its processes' markers. */
  marker: string
  group: LimitGroup
  /** Shared by the sandboxes of a driver. */
  scanner: ProcessScanner
  limits: Limits
  /** The mechanism that enforces the memory limit. */
  memoryHeldBy: string
}

/** A server's processes on this machine: sandboxd in its isolation, and everything it started. */
export class LocalSandbox implements Sandbox {
  readonly faultInjection: LocalFaultInjection
  readonly #process: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #connection: SandboxdConnection
  readonly #start: SandboxStart
  readonly #exited: Promise<{ reason: string }>
  /** Opens terminals for a sandboxd that cannot; null for one that can. */
  readonly #terminals: TerminalSender | null
  #stopping: Promise<void> | null = null

  /** Starts sandboxd; resolves when it accepts commands. Throws `ComputeError` with the start's error output. */
  static async start(start: SandboxStart): Promise<LocalSandbox> {
    const spawned = spawnWithSocket({
      ...start.launch,
      argv: [...start.group.enter, ...start.launch.argv],
    })
    const connection = await SandboxdConnection.open(spawned.socket)
    const sandbox = new LocalSandbox(spawned, connection, start)
    await sandbox.#configure()
    return sandbox
  }

  private constructor({ process, terminals }: Spawned, connection: SandboxdConnection, start: SandboxStart) {
    this.#process = process
    this.#connection = connection
    this.#start = start
    this.#terminals = terminals === null ? null : new TerminalSender(terminals)
    this.#exited = this.#waitForExit()
    this.faultInjection = new LocalFaultInjection({
      pid: process.pid,
      started: () => this.#started(),
      drained: () => connection.drained(),
      limits: start.limits,
      memoryHeldBy: start.memoryHeldBy,
    })
  }

  get exited(): Promise<{ reason: string }> {
    return this.#exited
  }

  get ending(): boolean {
    return this.#stopping !== null || this.#connection.over
  }

  get home(): string {
    return this.#start.launch.workspace
  }

  get tools(): string {
    return this.#start.launch.tools
  }

  /** Whether anything but sandboxd runs in it. */
  get occupied(): boolean {
    return this.#connection.busy > 0 || this.#started().length > 0
  }

  /** Pid of the process that berth started for it. */
  get pid(): number {
    return this.#process.pid
  }

  /** The sandbox's own processes, which run before any command. */
  #own: ReadonlySet<number> = new Set()

  exec(command: ExecCommand): Execution {
    return this.#execute(command)
  }

  terminal({ size, onOutput, ...command }: TerminalCommand): TerminalExecution {
    return this.#execute({ ...command, terminal: size, onOutput: (_, data) => onOutput(data) })
  }

  #execute(command: SandboxdCommand): TerminalExecution {
    if (this.#stopping !== null) throw new ComputeError('The server is being stopped.')
    if (command.terminal !== undefined && !this.#connection.over) this.#terminals?.send()
    const execution = this.#connection.exec(command)
    const marker = commandMarker(this.#start.marker, execution.id)
    return {
      exit: execution.exit,
      cancel: (graceMs) => execution.cancel(graceMs),
      listening: async () => (execution.over ? [] : listeningAddresses(this.#process.pid, marker)),
      write: (data) => execution.type(data),
      resize: (size) => execution.resize(size),
    }
  }

  /**
   * Ends everything that commands have started, in the background too. Writes the reason to the standard error of
   * running commands.
   */
  async endProcesses(reason: string): Promise<void> {
    for (const execution of this.#connection.executions) execution.note(reason)
    const doomed = new Set<number>()
    let complete = false
    const ended = killAll(() =>
      this.#started().filter((pid) => (complete ? doomed : doomed.add(pid)).has(pid)),
    )
    // All have been stopped before the first wait; a command that starts from now on is not among them.
    complete = true
    await ended
  }

  #started(): number[] {
    return findDescendants(this.#process.pid).filter((pid) => !this.#own.has(pid))
  }

  async pause(): Promise<() => void> {
    await Promise.race([this.#connection.drained(), Bun.sleep(PAUSE_PATIENCE_MS)])
    const paused = new Set<number>()
    for (let round = 0; round < PAUSE_ROUNDS; round += 1) {
      const fresh = this.#started().filter((pid) => !paused.has(pid) && !isStopped(pid))
      if (fresh.length === 0) break
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        paused.add(pid)
      }
    }
    return () => {
      for (const pid of paused) signal(pid, 'SIGCONT')
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#connection.shutdown()
    const timer = setTimeout(() => this.#connection.close('It was stopped.'), GRACE_MS + STOP_MARGIN_MS)
    await this.#exited
    clearTimeout(timer)
  }

  async #configure(): Promise<void> {
    const { launch, marker, group } = this.#start
    const errors = collectErrors(this.#process.stderr)
    const timer = setTimeout(() => this.#connection.close('It was not ready in time.'), READY_MS)
    try {
      await this.#connection.configure({
        workspace: launch.workspace,
        env: launch.commandEnv,
        marker,
        adoptOrphans: !launch.pidNamespace,
        receivesTerminals: this.#terminals !== null,
        ...group.sandboxd,
      })
      this.#own = new Set(findDescendants(this.#process.pid))
    } catch (error) {
      this.#connection.close('It did not start.')
      await this.#exited
      const said = await errors.text
      throw new ComputeError(said === '' ? messageOf(error) : `The sandbox did not start: ${said}`)
    } finally {
      clearTimeout(timer)
      errors.stop()
    }
  }

  /** Waits for the sandbox's end, whatever causes it, then removes everything that is left. */
  async #waitForExit(): Promise<{ reason: string }> {
    const ended = this.#process.exited.then((code) => `Its process ended with status ${code}.`)
    const why = await Promise.race([this.#connection.closed, ended])
    this.#connection.close(why)
    this.#terminals?.close()
    const inside = findDescendants(this.#process.pid)
    signal(this.#process.pid, 'SIGKILL')
    await this.#process.exited
    const { marker, group, scanner } = this.#start
    const family = { roots: [], sessions: [], marker, except: [process.pid] }
    // In a PID namespace too: the kernel ends its processes, but only after reporting its first process as ended.
    await killAll(async () => {
      const find = await scanner.scan()
      const left = [...find(family), ...group.pids(), ...inside.filter((pid) => readProcess(pid) !== null)]
      return [...new Set(left)]
    })
    const outOfMemory = group.memoryKills() > 0 && this.#stopping === null
    await group.close()
    if (this.#stopping !== null) return { reason: 'It was stopped.' }
    return { reason: outOfMemory ? `${why} It had run out of memory.` : why }
  }
}
