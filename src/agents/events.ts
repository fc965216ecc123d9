/**
 * What an agent reports of its work: the same events from every kind of agent. They are kept, in order, as the
 * transcript; names are camelCase, as in every body of tasks.
 */
export type AgentEvent =
  /** The agent says something. */
  | { readonly type: 'message'; readonly text: string }
  /** It uses a tool; `call` numbers its uses. */
  | { readonly type: 'toolCall'; readonly call: string; readonly tool: string; readonly input: ToolData }
  /** What came of that. */
  | {
      readonly type: 'toolResult'
      readonly call: string
      readonly tool: string
      readonly ok: boolean
      readonly output: ToolData
    }
  /** A line of what a program prints that is itself the agent. */
  | { readonly type: 'terminal'; readonly text: string }
  /** What the work has used so far, of a language model. */
  | {
      readonly type: 'usage'
      readonly inputTokens: number
      readonly outputTokens: number
      /** US dollars, where prices are known. */
      readonly cost?: number
    }
  /** Something about the work that is not part of it: a repeated request, a context that was shortened. */
  | { readonly type: 'notice'; readonly text: string }

/** Arguments and results of tools: JSON. */
export type ToolData = Readonly<Record<string, unknown>>

/** A piece of output while it comes. What it is a piece of is reported whole afterwards. */
export type OutputDelta =
  /** Output of the command that `call` runs, secrets masked. */
  | {
      readonly type: 'output'
      readonly call: string
      readonly stream: 'stdout' | 'stderr'
      readonly text: string
    }
  /** A piece of the message that the agent is about to say. */
  | { readonly type: 'text'; readonly text: string }
