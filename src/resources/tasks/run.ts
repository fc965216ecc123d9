import type { Agent, Assignment, Outcome } from '../../agents/agent.ts'
import { Workbench } from '../../agents/workbench/workbench.ts'
import type { Sandbox } from '../../compute/driver.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { Masks } from '../../runtime/masks.ts'
import type { StateChange, TaskRecords } from './records.ts'
import type { TaskRow } from './table.ts'
import { boundedText, Transcript } from './transcript.ts'

/** Why a task ends without its agent. */
export type Ending =
  | { readonly status: 'cancelled' }
  | { readonly status: 'failed'; readonly result: string }
  /** Its record was deleted with its server, so nothing is written. */
  | { readonly status: 'gone'; readonly result: string }

/** What a run needs of the server. */
export interface Place {
  sandbox: Sandbox
  workspace: Workspace
  /** The server's own variables now. */
  environment(): Readonly<Record<string, string>>
  /** The workspace has changed. */
  changed(): void
}

/** A running task: the work of its agent, the question that it waits for, and its transcript. */
export class TaskRun {
  readonly transcript: Transcript
  readonly #row: TaskRow
  readonly #records: TaskRecords
  readonly #abort = new AbortController()
  readonly #masks = new Masks()
  #answer: ((answer: string) => void) | null = null
  #asking: Promise<unknown> = Promise.resolve()
  readonly #held: Array<() => void> = []

  constructor(row: TaskRow, records: TaskRecords) {
    this.#row = row
    this.#records = records
    this.transcript = new Transcript(row.id, records, this.#masks)
  }

  /** Fires when the work must end. Its reason is an `Ending`. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Ends the work. The first reason counts. */
  end(ending: Ending): void {
    this.#abort.abort(ending)
  }

  /**
   * Runs the agent on a server.
   *
   * @throws as `Agent.work` does
   */
  async work(agent: Agent, place: Place): Promise<Outcome> {
    const { signal } = this
    const environment = (): Readonly<Record<string, string>> => {
      const variables = place.environment()
      this.#masks.add(Object.values(variables))
      return variables
    }
    environment()
    this.#masks.add(agent.secrets ?? [])
    const report: Assignment['report'] = (event) => {
      if (!signal.aborted) this.transcript.report(event)
    }
    const show: Assignment['show'] = (delta) => {
      if (!signal.aborted) this.transcript.show(delta)
    }
    const { sandbox, workspace, changed } = place
    const masks = this.#masks
    const outcome = await agent.work({
      id: this.#row.id,
      goal: this.#row.goal,
      workbench: new Workbench({ sandbox, workspace, environment, masks, report, show, signal, changed }),
      sandbox,
      environment,
      ask: (question) => this.#ask(question),
      hold: () => this.#hold(),
      report,
      show,
      signal,
    })
    return { ...outcome, result: this.mask(outcome.result) }
  }

  /** Changes the state of the task, and its transcript with it: both or none. @returns as `TaskRecords.becomes` does */
  becomes(change: StateChange, tell: () => void): boolean {
    return this.transcript.committing(() => this.#records.becomes(this.#row, change, tell))
  }

  /** Masks secrets in a text, and limits its length to that of transcript events. */
  mask(text: string): string {
    return boundedText(this.#masks.mask(text))
  }

  /**
   * Gives the agent the answer to its question.
   *
   * @returns false if it waits for none
   */
  answer(answer: string): boolean {
    const give = this.#answer
    if (give === null || this.signal.aborted) return false
    const resumed = this.becomes({ status: 'running' }, () => {
      this.transcript.add({ type: 'answer', answer })
      this.transcript.add({ type: 'status', status: 'running' })
    })
    // Reset only now, so an answer that could not be written can be sent again.
    this.#answer = null
    if (resumed) give(answer)
    return resumed
  }

  /**
   * Lets a held agent continue.
   *
   * @returns false if it is not held
   */
  release(): boolean {
    if (this.signal.aborted) return false
    const go = this.#held.shift()
    go?.()
    return go !== undefined
  }

  /** Whether the agent waits to be released. */
  get isHeld(): boolean {
    return this.#held.length > 0 && !this.signal.aborted
  }

  /** Asks one question at a time. A further one waits for the answer to the first. */
  #ask(question: string): Promise<string> {
    const asked = this.#asking.then(async () => {
      this.signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<string>()
      const shown = this.mask(question)
      this.becomes({ status: 'awaiting_input', question: shown }, () => {
        this.transcript.add({ type: 'question', question: shown })
        this.transcript.add({ type: 'status', status: 'awaiting_input' })
      })
      this.#answer = resolve
      return this.#orAborted(promise)
    })
    this.#asking = asked.catch(() => {})
    return asked
  }

  #hold(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held.push(resolve)
    this.#records.stirred()
    return this.#orAborted(promise)
  }

  #orAborted<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this
    signal.throwIfAborted()
    const { promise: either, resolve, reject } = Promise.withResolvers<T>()
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    return either
  }
}
