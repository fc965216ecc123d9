import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { ResponseOf } from '../../route-client/client.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { ApiClient } from '../api/client.ts'
import { PrintedOutput } from './printed-output.ts'

/** Limits for a server: commands whose output is kept, and lines for the history. @bound program */
const MOST_RUNS = 20
const MOST_LINES = 200

/** Commands that run at once. Each has a connection of the browser's six, which the page needs too. @bound program */
const MOST_RUNNING = 3

/** How a command ended. */
type CommandEnd = Omit<ResponseOf<'exec.stream'>, 'stdout' | 'stderr'>

/** What is known of a command. */
export interface CommandState {
  /** Null while it runs, and if it was cancelled or could not be run. */
  readonly end: CommandEnd | null
  /** Why it could not be run, or lost its connection. */
  readonly failure: string | null
  readonly isRunning: boolean
  /** Milliseconds that it took; null while it runs. */
  readonly ms: number | null
}

/** A command that runs on a server, or ran. */
export class CommandRun {
  readonly #abort = new AbortController()
  readonly #state = signal<CommandState>({ end: null, failure: null, isRunning: true, ms: null })
  readonly output = new PrintedOutput()

  constructor(
    readonly id: number,
    readonly command: string,
  ) {}

  /** What is known of it. */
  get state(): ReadonlySignal<CommandState> {
    return this.#state
  }

  /** Ends it. */
  cancel(): void {
    this.#abort.abort()
  }

  /** Runs it; resolves when it has ended. */
  async run(api: ApiClient, serverId: string): Promise<void> {
    const began = performance.now()
    let end: CommandEnd | null = null
    let failure: string | null = null
    try {
      const { signal } = this.#abort
      const params = { serverId }
      const body = { command: this.command }
      for await (const { event, data } of api.stream('exec.run', { params, body, signal })) {
        if (event === 'exit') end = data
        else if (event === 'error') failure = data.message
        else this.output.print(event, data)
      }
      if (end === null && failure === null) failure = 'The connection was lost, which ends the command.'
    } catch (error) {
      if (!this.#abort.signal.aborted) failure = messageOf(error)
    }
    this.output.flush()
    const ms = performance.now() - began
    this.#state.value = { end, failure, isRunning: false, ms }
  }
}

/** The commands that were run from the page, by server. They run on while another screen is shown. */
export class CommandRuns {
  readonly #api: ApiClient
  readonly #runs = new Map<string, Signal<readonly CommandRun[]>>()
  #next = 1

  constructor(api: ApiClient) {
    this.#api = api
  }

  /** The commands of a server, the newest first. */
  of(serverId: string): ReadonlySignal<readonly CommandRun[]> {
    return this.#of(serverId)
  }

  /**
   * Runs a command on a server, which wakes it.
   *
   * @throws Error if several run already
   */
  run(serverId: string, command: string): void {
    const running = [...this.#runs.values()]
      .flatMap((runs) => runs.peek())
      .filter(({ state }) => state.peek().isRunning)
    if (running.length >= MOST_RUNNING)
      throw new Error(`${MOST_RUNNING} commands run already. Cancel one, or run it in a terminal.`)
    const runs = this.#of(serverId)
    const run = new CommandRun(this.#next, command)
    this.#next += 1
    const all = [run, ...runs.peek()]
    runs.value = all.filter(({ state }, at) => at < MOST_RUNS || state.peek().isRunning)
    void run.run(this.#api, serverId)
    this.remember(serverId, command)
  }

  /** Keeps a line that was run on a server, for `lines`. */
  remember(serverId: string, command: string): void {
    const lines = this.lines(serverId).filter((line) => line !== command)
    sessionStorage.setItem(keyOf(serverId), JSON.stringify([command, ...lines].slice(0, MOST_LINES)))
  }

  /** Forgets the commands of a server that have ended. */
  clear(serverId: string): void {
    const runs = this.#of(serverId)
    runs.value = runs.peek().filter(({ state }) => state.peek().isRunning)
  }

  /** Returns the lines that were run on a server in this session of the browser, each once, the newest first. */
  lines(serverId: string): readonly string[] {
    try {
      const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(serverId)) ?? '[]')
      return Array.isArray(kept) ? kept.filter((line) => typeof line === 'string') : []
    } catch {
      // The browser keeps nothing, or not JSON: nothing was run.
      return []
    }
  }

  #of(serverId: string): Signal<readonly CommandRun[]> {
    const runs = this.#runs.get(serverId) ?? signal<readonly CommandRun[]>([])
    this.#runs.set(serverId, runs)
    return runs
  }
}

const keyOf = (serverId: string): string => `berth.commands.${serverId}`
