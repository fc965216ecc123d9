import type { CommandOwner, Sandbox } from '../compute/sandbox.ts'
import { ExplainedError } from '../errors.ts'
import type { AgentEvent, OutputDelta } from './events.ts'
import type { Workbench } from './workbench/workbench.ts'

/**
 * Carries out goals on servers. Each kind of agent implements this interface and is listed in registry.ts; nothing
 * else knows which kinds exist.
 */
export interface Agent {
  /**
   * Secrets, such as a key, that must not appear in a transcript, log or result. The server's own secrets are always
   * hidden.
   */
  readonly secrets?: readonly string[]

  /**
   * Works on a goal until it is reached or given up.
   *
   * @throws AgentError if it cannot continue, with a message for a person; the reason with which `assignment.signal`
   * is aborted
   */
  work(assignment: Assignment): Promise<Outcome>

  /**
   * Chooses the template that an app for a goal starts from, and plans how to build it. Missing in agents that cannot
   * plan.
   *
   * @throws as `work` does
   */
  plan?(planning: PlanRequest): Promise<AgentPlan>
}

/** One goal, and everything an agent needs to work on it. */
export interface Assignment {
  /** Id of the task or build. */
  readonly id: string
  /** The account that it belongs to. */
  readonly accountId?: string
  /** The goal, in the caller's words. */
  readonly goal: string
  /** What berth adds to the goal, such as the directory of an app. Scenarios do not match it. */
  readonly context?: string
  /** Runs commands and reaches files on the server; each use is part of the transcript. */
  readonly workbench: Workbench
  /** The server's sandbox, for agents that run as a program on it. */
  readonly sandbox: Sandbox
  /** What the processes of such a program belong to. */
  readonly owner: CommandOwner
  /** Returns the server's own variables now, by name; their values are secret. */
  environment(): Readonly<Record<string, string>>
  /** Asks the caller and resolves with the answer; null if there is nobody to ask. */
  readonly ask: ((question: string) => Promise<string>) | null
  /** Resolves when the task is released by the control API; null if it cannot be. */
  readonly hold: (() => Promise<void>) | null
  /** Adds an event to the transcript. */
  report(event: AgentEvent): void
  /** Sends a piece of output to current listeners. It is not stored. */
  addDelta(delta: OutputDelta): void
  /** Aborts when the work has to end at once. */
  readonly signal: AbortSignal
}

/** The result of the work. */
export interface Outcome {
  readonly status: 'completed' | 'failed'
  /** What was done, or why it failed, for a person. */
  readonly result: string
  /** Whether nothing was done because no agent is configured that could. */
  readonly idle?: boolean
}

/** The input for a plan. */
export interface PlanRequest {
  /** Id of the build. */
  readonly id: string
  readonly goal: string
  readonly templates: readonly { id: string; label: string; description: string }[]
  /** Adds an event to the transcript. */
  report(event: AgentEvent): void
  readonly signal: AbortSignal
}

/** How to build an app. */
export interface AgentPlan {
  /** Id of one of the given templates. */
  readonly template: string
  /** The steps, in Markdown. */
  readonly steps: string
}

/** The work cannot go on: its message is the result that the caller reads. */
export class AgentError extends ExplainedError {
  override readonly name = 'AgentError'
}
