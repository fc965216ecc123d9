import type { Sandbox } from '../compute/driver.ts'
import type { AgentEvent, OutputDelta } from './events.ts'
import type { Workbench } from './workbench/workbench.ts'

/**
 * Somebody who carries out goals on servers. Every kind implements this one interface and is entered in
 * registry.ts; nothing else knows which kinds there are.
 */
export interface Agent {
  /** What must be seen in no transcript, log or result besides the server's own secrets, such as a key. */
  readonly secrets?: readonly string[]

  /**
   * Works on a goal until it is reached or given up.
   *
   * @throws AgentError if it cannot go on, with what a person is told; whatever `assignment.signal` is aborted with
   */
  work(assignment: Assignment): Promise<Outcome>

  /**
   * Chooses among templates what an app for a goal begins with, and says how it is to be built. Not there for agents
   * that cannot plan.
   *
   * @throws as `work` does
   */
  plan?(planning: PlanRequest): Promise<AgentPlan>
}

/** One goal to work on, and all that there is to work with. */
export interface Assignment {
  /** Id of the task or build that it is for. */
  readonly id: string
  /** What is to be reached, in the caller's words. */
  readonly goal: string
  /**
   * What berth adds to it where more is to be known, such as where an app lies; not part of the goal that is matched.
   */
  readonly context?: string
  /** Runs commands and reaches files on the server; each use is part of the transcript. */
  readonly workbench: Workbench
  /** The server itself, for agents that run as a program on it. */
  readonly sandbox: Sandbox
  /** Returns the server's own variables now, by name; their values are secret. */
  environment(): Readonly<Record<string, string>>
  /** Asks the caller and resolves with the answer; null if there is nobody to ask. */
  readonly ask: ((question: string) => Promise<string>) | null
  /** Resolves when somebody releases the task by the control API; null if nobody can. */
  readonly hold: (() => Promise<void>) | null
  /** Adds an event to the transcript. */
  report(event: AgentEvent): void
  /** Shows a piece of output to whoever watches just now; it is not kept. */
  show(delta: OutputDelta): void
  /** Fires when the work is to end at once. */
  readonly signal: AbortSignal
}

/** What came of the work. */
export interface Outcome {
  readonly status: 'completed' | 'failed'
  /** What was done, or why it failed, for a person. */
  readonly result: string
  /** Nothing was done, since nothing says how: no agent is configured that could. */
  readonly idle?: boolean
}

/** What a plan is made from. */
export interface PlanRequest {
  /** Id of the build that it is for. */
  readonly id: string
  readonly goal: string
  readonly templates: readonly { id: string; label: string; description: string }[]
  /** Adds an event to the transcript. */
  report(event: AgentEvent): void
  readonly signal: AbortSignal
}

/** How an app is to be built. */
export interface AgentPlan {
  /** Id of one of the given templates. */
  readonly template: string
  /** What is to be done, in Markdown. */
  readonly steps: string
}

/** The work cannot go on: its message is the result that the caller reads. */
export class AgentError extends Error {
  override readonly name = 'AgentError'
}
