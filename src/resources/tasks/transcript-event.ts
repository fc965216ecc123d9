import type { AgentEvent } from '../../agents/agents.ts'
import type { TaskStatus } from './model.ts'

/** An event of a transcript: a report of the agent, or a change of the task. */
export type TranscriptEvent =
  | AgentEvent
  | { readonly type: 'status'; readonly status: TaskStatus; readonly result?: string }
  | { readonly type: 'question'; readonly question: string }
  | { readonly type: 'answer'; readonly answer: string }
