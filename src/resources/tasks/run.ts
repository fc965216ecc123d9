import type { Agent, Assignment, Outcome } from '../../agents/agents.ts'
import { Workbench } from '../../agents/workbench/workbench.ts'
import type { Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import type { Masks } from '../../runtime/masks.ts'
import { orAborted } from '../../runtime/wait.ts'
import type { StatusChange, TaskRecords } from './records.ts'
import type { TaskRow } from './table.ts'
import { Transcript, truncate } from './transcript.ts'

/** How a task ends if its agent does not end it. */
export type TaskEnd =
  | { readonly status: 'cancelled' }
  | { readonly status: 'failed'; readonly result: string }
  /** Its record was deleted with its server. Nothing is written. */
  | { readonly status: 'gone'; readonly result: string }

/** The parts of a server that a run uses. */
interface ServerResources {
  sandbox: Sandbox
  workspace: Workspace
  /** Returns the server's current variables. */
  environment(): Readonly<Record<string, string>>
  /** Called when the workspace has changed. */
  onChange(): void
}

/** A running task: its agent, its open question and its transcript. */
export class TaskRun {
  readonly transcript: Transcript
  readonly #row: TaskRow
  readonly #records: TaskRecords
  readonly #abort = new AbortController()
  /** Hides the values of the server's variables. */
  readonly masks: Masks
  #answer: ((answer: string) => void) | null = null
  #asking: Promise<unknown> = Promise.resolve()
  readonly #held: Array<() => void> = []

  constructor(row: TaskRow, records: TaskRecords, masks: Masks) {
    this.#row = row
    this.#records = records
    this.masks = masks
    this.transcript = new Transcript(row.id, records, masks)
  }

  /** Fires when the work must end. Its reason is an `Ending`. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Ends the work. The first reason counts. */
  end(ending: TaskEnd): void {
    this.#abort.abort(ending)
  }

  /**
   * Runs the agent on a server.
   *
   * @throws as `Agent.work` does
   */
  async runAgent(agent: Agent, server: ServerResources): Promise<Outcome> {
    const { signal } = this
    const environment = (): Readonly<Record<string, string>> => {
      const variables = server.environment()
      this.masks.update(Object.values(variables))
      return variables
    }
    environment()
    this.masks.add(agent.secrets ?? [])
    const report: Assignment['report'] = (event) => {
      if (!signal.aborted) this.transcript.report(event)
    }
    const addDelta: Assignment['addDelta'] = (delta) => {
      if (!signal.aborted) this.transcript.addDelta(delta)
    }
    const { sandbox, workspace, onChange } = server
    const { masks } = this
    const owner = { kind: 'task', id: this.#row.id } as const
    const outcome = await agent.work({
      id: this.#row.id,
      accountId: this.#row.accountId,
      goal: this.#row.goal,
      workbench: new Workbench({
        owner,
        sandbox,
        workspace,
        environment,
        masks,
        report,
        addDelta,
        signal,
        onChange,
      }),
      sandbox,
      owner,
      environment,
      ask: (question) => this.#ask(question),
      hold: () => this.#hold(),
      report,
      addDelta,
      signal,
    })
    return { ...outcome, result: this.mask(outcome.result) }
  }

  /**
   * Changes the task's status and its transcript in one transaction.
   *
   * @returns as `TaskRecords.setStatus` does
   */
  setStatus(change: StatusChange, addEvents: () => void): boolean {
    return this.transcript.inTransaction(() => this.#records.setStatus(this.#row, change, addEvents))
  }

  /** Masks secrets in a text, and limits its length to that of transcript events. */
  mask(text: string): string {
    return truncate(this.masks.mask(text))
  }

  /**
   * Answers the agent's question.
   *
   * @returns false if it has not asked one
   */
  answer(answer: string): boolean {
    const resolve = this.#answer
    if (resolve === null || this.signal.aborted) return false
    const resumed = this.setStatus({ status: 'running' }, () => {
      this.transcript.add({ type: 'answer', answer })
      this.transcript.add({ type: 'status', status: 'running' })
    })
    // Reset only now, so an answer that could not be written can be sent again.
    this.#answer = null
    if (resumed) resolve(answer)
    return resumed
  }

  /**
   * Lets a held agent continue.
   *
   * @returns false if it is not held
   */
  release(): boolean {
    if (this.signal.aborted) return false
    const resume = this.#held.shift()
    resume?.()
    return resume !== undefined
  }

  /** Reports whether the agent waits to be released. */
  get isHeld(): boolean {
    return this.#held.length > 0 && !this.signal.aborted
  }

  /** Asks one question at a time. A further one waits for the answer to the first. */
  #ask(question: string): Promise<string> {
    const asked = this.#asking.then(async () => {
      this.signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<string>()
      const shown = this.mask(question)
      this.setStatus({ status: 'awaiting_input', question: shown }, () => {
        this.transcript.add({ type: 'question', question: shown })
        this.transcript.add({ type: 'status', status: 'awaiting_input' })
      })
      this.#answer = resolve
      return orAborted(promise, this.signal)
    })
    this.#asking = asked.catch(() => {})
    return asked
  }

  #hold(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held.push(resolve)
    this.#records.notifyChange(this.#row)
    return orAborted(promise, this.signal)
  }
}
