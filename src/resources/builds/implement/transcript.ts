import type { AgentEvent, OutputDelta, ToolData } from '../../../agents/events.ts'
import type { LogSource } from '../../../hosting/app-runtime/log/entry.ts'
import type { AppLog } from '../../../hosting/app-runtime/log/log.ts'
import type { LogOutput } from '../../../hosting/app-runtime/log/output.ts'

/** Most characters of a tool's arguments or error that are shown. */
const SHOWN_CHARACTERS = 400

/** Writes what an agent does into a build's log, as lines for people. */
export class BuildTranscript {
  readonly #log: AppLog
  readonly #source: LogSource
  readonly #encoder = new TextEncoder()
  /** Output of commands under way, by call. */
  readonly #outputs = new Map<string, LogOutput>()
  /** What was used of a language model, in all. */
  #used: Extract<AgentEvent, { type: 'usage' }> | null = null

  /** @param source under which the lines stand */
  constructor(log: AppLog, source: LogSource) {
    this.#log = log
    this.#source = source
  }

  /** Adds an event. */
  report(event: AgentEvent): void {
    if (event.type === 'usage') this.#used = event
    else if (event.type === 'toolCall') this.#line(callText(event.tool, event.input))
    else if (event.type === 'toolResult') this.#result(event)
    else if (event.text.trim() !== '') this.#line(event.text)
  }

  /** Adds a piece of output while it is printed. Messages of the agent are added when they are complete. */
  show(delta: OutputDelta): void {
    if (delta.type === 'text') return
    const output = this.#outputs.get(delta.call) ?? this.#log.output(this.#source)
    this.#outputs.set(delta.call, output)
    // What is printed faster than a log can take is left out there.
    void output.write(delta.stream, this.#encoder.encode(delta.text))
  }

  /** Ends the transcript. */
  end(): void {
    for (const output of this.#outputs.values()) output.end()
    this.#outputs.clear()
    const used = this.#used
    this.#used = null
    if (used === null) return
    const cost = used.cost === undefined ? '' : `, ${used.cost.toFixed(4)} US dollars`
    this.#line(`Used ${used.inputTokens} tokens of input and ${used.outputTokens} of output${cost}.`)
  }

  #result({ call, ok, output }: Extract<AgentEvent, { type: 'toolResult' }>): void {
    const shown = this.#outputs.get(call)
    shown?.end()
    this.#outputs.delete(call)
    if (shown === undefined) {
      for (const stream of [output.stdout, output.stderr])
        if (typeof stream === 'string' && stream !== '') this.#line(stream)
    }
    if (ok) return
    const { error, exitCode, timedOut } = output
    if (typeof error === 'string') this.#line(`Failed: ${short(error)}`)
    else if (timedOut === true) this.#line('Failed: it took too long.')
    else this.#line(`Failed${exitCode === undefined ? '' : ` with exit code ${exitCode}`}.`)
  }

  #line(text: string): void {
    this.#log.append(this.#source, text)
  }
}

function callText(tool: string, input: ToolData): string {
  const { command, path } = input
  if (tool === 'run' && typeof command === 'string') return `$ ${command}`
  if ((tool === 'write' || tool === 'read') && typeof path === 'string') return `${tool} ${path}`
  return `${tool} ${short(JSON.stringify(input))}`
}

const short = (text: string): string =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
