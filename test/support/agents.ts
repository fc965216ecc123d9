import type { Agent, Assignment, Outcome } from '../../src/agents/agent.ts'
import type { AgentEvent, OutputDelta } from '../../src/agents/events.ts'
import { Workbench } from '../../src/agents/workbench/workbench.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import type { Workspace } from '../../src/compute/workspace.ts'
import { Masks } from '../../src/runtime/masks.ts'
import { Bench } from '../compute/bench.ts'

/** How a test wants a piece of work. */
export interface WorkOptions {
  /** The server's own variables; their values are masked. */
  variables?: Record<string, string>
  /** What answers questions; null for nobody. Without it questions wait for `Work.answer`. */
  ask?: Assignment['ask']
  /** What holds; null for nobody who releases. Without it a hold waits for `Work.release`. */
  hold?: Assignment['hold']
  context?: string
}

/** A running server that agents work on, with its real sandbox and files. Leaves nothing behind. */
export class AgentServer implements AsyncDisposable {
  private constructor(
    readonly bench: Bench,
    readonly sandbox: Sandbox,
    readonly workspace: Workspace,
  ) {}

  static async open(): Promise<AgentServer> {
    const bench = new Bench('none')
    const handle = await bench.driver.create('srv_agents')
    const sandbox = await bench.startAgain('srv_agents', handle)
    return new AgentServer(bench, sandbox, bench.driver.workspace(handle))
  }

  /** Has an agent begin to work on a goal. */
  begin(agent: Agent, goal: string, options: WorkOptions = {}): Work {
    return new Work(this, agent, goal, options)
  }

  /** Has an agent work on a goal to its end. */
  async work(agent: Agent, goal: string, options: WorkOptions = {}): Promise<Work & { outcome: Outcome }> {
    const work = this.begin(agent, goal, options)
    return Object.assign(work, { outcome: await work.done })
  }

  /** Returns the text of a file in the workspace, or null if it does not exist. */
  async text(path: string): Promise<string | null> {
    if ((await this.workspace.stat(path)) === null) return null
    return new TextDecoder().decode(await this.workspace.read(path))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.bench[Symbol.asyncDispose]()
  }
}

/** A piece of work under observation. */
export class Work {
  /** What was reported so far. */
  readonly events: AgentEvent[] = []
  /** What was shown so far and is not kept. */
  readonly deltas: OutputDelta[] = []
  /** Resolves when the agent asks, for the first time. */
  readonly asked = Promise.withResolvers<string>()
  /** Resolves when the agent is held, for the first time. */
  readonly held = Promise.withResolvers<void>()
  /** What came of it. */
  readonly done: Promise<Outcome>
  readonly #abort = new AbortController()
  readonly #answer = Promise.withResolvers<string>()
  readonly #release = Promise.withResolvers<void>()

  constructor(server: AgentServer, agent: Agent, goal: string, options: WorkOptions) {
    const { sandbox, workspace } = server
    const { variables = {}, context } = options
    const masks = new Masks()
    masks.add(Object.values(variables))
    const report = (event: AgentEvent): void => void this.events.push(event)
    const addDelta = (delta: OutputDelta): void => void this.deltas.push(delta)
    const environment = () => variables
    const { signal } = this.#abort
    const owner = { kind: 'task', id: 'task_01k0' } as const
    const parts = { owner, sandbox, workspace, environment, masks, report, addDelta, signal }
    const workbench = new Workbench(parts)
    const ask = (question: string): Promise<string> => {
      this.asked.resolve(question)
      return this.#answer.promise
    }
    const hold = (): Promise<void> => {
      this.held.resolve()
      return this.#release.promise
    }
    this.done = agent.work({
      id: owner.id,
      owner,
      goal,
      ...(context === undefined ? {} : { context }),
      workbench,
      sandbox,
      environment,
      ask: options.ask === undefined ? ask : options.ask,
      hold: options.hold === undefined ? hold : options.hold,
      report,
      addDelta,
      signal,
    })
    this.done.catch(() => {})
  }

  /** Answers the question. */
  answer(text: string): void {
    this.#answer.resolve(text)
  }

  /** Releases it. */
  release(): void {
    this.#release.resolve()
  }

  /** Ends it from outside. */
  abort(reason: unknown): void {
    this.#abort.abort(reason)
  }
}
