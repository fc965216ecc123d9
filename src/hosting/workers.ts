import type { Sandbox } from '../compute/sandbox.ts'
import type { AppProgram } from './app-runtime/process.ts'
import type { SupervisorOptions } from './app-runtime/supervision.ts'
import { AppSupervisor } from './app-runtime/supervisor.ts'

/** What a worker does: it runs, waits to be started again, has ended or was stopped, or crashed too often. */
export const WORKER_STATUSES = ['running', 'restarting', 'stopped', 'failed'] as const

/** A worker of an app. */
export interface Worker {
  readonly name: string
  readonly command: string
  readonly status: (typeof WORKER_STATUSES)[number]
  /** Of its process that ended last; null while it runs, and if that is not known. */
  readonly exitCode: number | null
  /** How often it was started again after a crash. */
  readonly restarts: number
}

/** The options of `Workers`. */
type WorkersOptions = Omit<SupervisorOptions, 'sandbox' | 'onState'> & {
  /** Called when one starts, ends or crashes. */
  onState: () => void
}

/** A worker that was started, and what keeps it running. */
interface Supervised {
  readonly command: string
  readonly supervisor: AppSupervisor
}

/** Runs the programs of an app that answer no requests. Each starts when the one of its name has ended. */
export class Workers {
  readonly #options: WorkersOptions
  #all: ReadonlyMap<string, Supervised> = new Map()
  #isReleased = false

  constructor(options: WorkersOptions) {
    this.#options = options
  }

  /** Whether one runs, or will again. */
  get areUp(): boolean {
    return this.list().some(({ status }) => status === 'running' || status === 'restarting')
  }

  /** Returns the workers as they are, by name. */
  list(): Worker[] {
    return [...this.#all].map(([name, { command, supervisor }]) => ({
      ...{ name, command, ...statusOf(supervisor) },
      restarts: supervisor.restarts,
    }))
  }

  /** A sentence for each that crashed and does not run. */
  get failures(): string[] {
    return [...this.#all].flatMap(([name, { supervisor: one }]) => {
      if (one.crash === null) return []
      const next = one.state.kind === 'given_up' ? 'Nothing starts it again.' : 'It is started again.'
      return [`The worker ${JSON.stringify(name)} does not run: ${one.crash.reason} ${next}`]
    })
  }

  /**
   * Ends the workers of before, starts these, and resolves when each has run for 2 s or has ended.
   *
   * @param isOnlyTry whether one that crashes by then is not started again
   * @returns what those have failed with that crashed by then
   */
  async run(sandbox: Sandbox, programs: readonly AppProgram[], isOnlyTry: boolean): Promise<unknown[]> {
    const before = this.#all
    const began = programs.map((program) => {
      const name = program.worker ?? ''
      const known = before.get(name)?.supervisor
      return { name, program, supervisor: known?.sandbox === sandbox ? known : this.#supervise(sandbox) }
    })
    this.#all = new Map(
      began.map(({ name, program, supervisor }) => [name, { command: program.shown, supervisor }]),
    )
    const kept = new Set(began.map(({ supervisor }) => supervisor))
    const dropped = [...before.values()].filter(({ supervisor }) => !kept.has(supervisor))
    await Promise.all(dropped.map(({ supervisor }) => supervisor.stop()))
    const ran = await Promise.allSettled(
      began.map(({ program, supervisor }) => supervisor.runWorker(program, isOnlyTry)),
    )
    return ran.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  }

  /** Ends all. Resolves when none is left. */
  async stop(): Promise<void> {
    const running = [...this.#all.values()].filter(({ supervisor }) => supervisor.state.kind !== 'given_up')
    await Promise.all(running.map(({ supervisor }) => supervisor.stop()))
  }

  /** Ignores the workers from now on, because berth stops. Their server ends them. */
  release(): void {
    this.#isReleased = true
  }

  #supervise(sandbox: Sandbox): AppSupervisor {
    const { onState, ...options } = this.#options
    return new AppSupervisor({ ...options, sandbox, onState: () => this.#isReleased || onState() })
  }
}

function statusOf({ state, crash }: AppSupervisor): Pick<Worker, 'status' | 'exitCode'> {
  switch (state.kind) {
    case 'restarting':
      return { status: 'restarting', exitCode: crash?.exitCode ?? null }
    case 'given_up':
      return { status: 'failed', exitCode: crash?.exitCode ?? null }
    case 'ended':
      return { status: 'stopped', exitCode: 0 }
    case 'stopped':
      return { status: 'stopped', exitCode: null }
    default:
      return { status: 'running', exitCode: null }
  }
}
