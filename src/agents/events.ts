/**
 * What every kind of agent reports of its work. The events are kept, in order, as the transcript. Names are
 * camelCase, as in every body of tasks.
 */
export type AgentEvent =
  /** A message by the agent. */
  | { readonly type: 'message'; readonly text: string }
  /** It uses a tool; `call` numbers its uses. */
  | { readonly type: 'toolCall'; readonly call: string; readonly tool: string; readonly input: ToolData }
  /** The result of a tool's use. */
  | {
      readonly type: 'toolResult'
      readonly call: string
      readonly tool: string
      readonly ok: boolean
      readonly output: ToolData
    }
  /** A line of output of an agent that is a program. */
  | { readonly type: 'terminal'; readonly text: string }
  /** A language model's usage since the start of the work. */
  | {
      readonly type: 'usage'
      readonly inputTokens: number
      readonly outputTokens: number
      /** US dollars, if prices are known. */
      readonly cost?: number
    }
  /** Something about the work that is not part of it: a repeated request, a context that was shortened. */
  | { readonly type: 'notice'; readonly text: string }

/** Arguments and results of tools: JSON. */
export type ToolData = Readonly<Record<string, unknown>>

/** A piece of output while it is produced. The whole is reported afterwards. */
export type OutputDelta =
  /** Output of the command that `call` runs, secrets masked. */
  | {
      readonly type: 'output'
      readonly call: string
      readonly stream: 'stdout' | 'stderr'
      readonly text: string
    }
  /** A piece of the agent's next message. */
  | { readonly type: 'text'; readonly text: string }
