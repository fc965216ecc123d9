import type { AgentEvent, OutputDelta, ToolData } from '../../../agents/agents.ts'
import type { AppLog, LogOutput, LogSource } from '../../../hosting/app.ts'

/** Most characters shown of a tool's arguments or error. @bound reader */
const MAX_SHOWN = 400

/** Writes the events of an agent to a build's log as readable lines. */
export class BuildTranscript {
  readonly #log: AppLog
  readonly #source: LogSource
  readonly #encoder = new TextEncoder()
  /** Output of running commands, by call. */
  readonly #outputs = new Map<string, LogOutput>()
  /** The last report of a language model's usage, which is cumulative. */
  #usage: Extract<AgentEvent, { type: 'usage' }> | null = null

  /** @param source the source of the lines in the log */
  constructor(log: AppLog, source: LogSource) {
    this.#log = log
    this.#source = source
  }

  /** Adds an event. */
  report(event: AgentEvent): void {
    if (event.type === 'usage') this.#usage = event
    else if (event.type === 'toolCall') this.#append(callText(event.tool, event.input))
    else if (event.type === 'toolResult') this.#appendResult(event)
    else if (event.text.trim() !== '') this.#append(event.text)
  }

  /** Adds a piece of a command's output. Skips pieces of messages, which `report` receives complete. */
  addDelta(delta: OutputDelta): void {
    if (delta.type === 'text') return
    const output = this.#outputs.get(delta.call) ?? this.#log.output(this.#source)
    this.#outputs.set(delta.call, output)
    // Not awaited: the log drops output that is printed faster than it can store.
    void output.write(delta.stream, this.#encoder.encode(delta.text))
  }

  /** Ends the transcript. */
  end(): void {
    for (const output of this.#outputs.values()) output.end()
    this.#outputs.clear()
    const used = this.#usage
    this.#usage = null
    if (used === null) return
    const cost = used.cost === undefined ? '' : `, ${used.cost.toFixed(4)} US dollars`
    this.#append(`Used ${used.inputTokens} tokens of input and ${used.outputTokens} of output${cost}.`)
  }

  #appendResult({ call, ok, output }: Extract<AgentEvent, { type: 'toolResult' }>): void {
    const shown = this.#outputs.get(call)
    shown?.end()
    this.#outputs.delete(call)
    if (shown === undefined) {
      for (const stream of [output.stdout, output.stderr])
        if (typeof stream === 'string' && stream !== '') this.#append(stream)
    }
    if (ok) return
    const { error, exitCode, timedOut } = output
    if (typeof error === 'string') this.#append(`Failed: ${shorten(error)}`)
    else if (timedOut === true) this.#append('Failed: it took too long.')
    else this.#append(`Failed${exitCode === undefined ? '' : ` with exit code ${exitCode}`}.`)
  }

  #append(text: string): void {
    this.#log.append(this.#source, text)
  }
}

function callText(tool: string, input: ToolData): string {
  const { command, path } = input
  if (tool === 'run' && typeof command === 'string') return `$ ${command}`
  if ((tool === 'write' || tool === 'read') && typeof path === 'string') return `${tool} ${path}`
  return `${tool} ${shorten(JSON.stringify(input))}`
}

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
