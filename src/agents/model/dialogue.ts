import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import type { AgentLimits } from '../../config/agents.ts'
import type { Masks } from '../../runtime/masks.ts'
import { AgentError } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import { ModelBudget } from './budget.ts'
import { Conversation } from './conversation.ts'
import type { ModelEndpoint } from './endpoint.ts'
import { EndpointFailure } from './failures.ts'
import type { ModelResponse, TokenCount } from './response.ts'

/** Characters per token, to estimate usage that an endpoint does not report. */
const CHARACTERS_PER_TOKEN = 4

/** The options of a `Dialogue`. */
interface DialogueOptions {
  endpoint: ModelEndpoint
  limits: AgentLimits
  /** The system prompt, and the goal. */
  system: string
  goal: string
  /** Hides secrets in the model's messages. */
  masks: Masks
  report(event: AgentEvent): void
  /** Shows a piece of the model's next message. */
  show(text: string): void
  signal: AbortSignal
}

/** The exchange with a model for one purpose, within its budget. Reports all of it. Dispose of it. */
export class Dialogue implements Disposable {
  readonly budget: ModelBudget
  readonly #options: DialogueOptions
  readonly #conversation: Conversation
  #lastText = ''
  #isEstimated = false

  constructor(parts: DialogueOptions) {
    this.#options = parts
    this.budget = new ModelBudget(parts.limits)
    this.#conversation = new Conversation(parts.system, parts.goal, parts.limits.context)
  }

  /** Adds to the conversation; see `Conversation.add`. */
  readonly add: Conversation['add'] = (...said) => this.#conversation.add(...said)

  /**
   * Requests the model's next response. Shortens old turns if the request would be too long.
   *
   * @throws AgentError if the budget is used up, EndpointFailure, the reason of the signal
   */
  async request(tools: LanguageModelV4FunctionTool[]): Promise<ModelResponse> {
    if (this.#conversation.fit())
      this.#notice('The conversation grew long: what lies back in it was shortened.')
    for (;;) {
      this.#checkBudget()
      try {
        const response = await this.#requestOnce(tools)
        this.#count(response)
        return response
      } catch (error) {
        this.#options.signal.throwIfAborted()
        this.#checkBudget()
        if (!(error instanceof EndpointFailure) || error.recovery !== 'shorter') throw error
        if (!this.#conversation.tighten()) throw error
        this.#notice(`${error.message} What lies back in the conversation was shortened.`)
      }
    }
  }

  /** The model's last message, as a sentence to append; empty if there is none. */
  get lastWords(): string {
    return this.#lastText === '' ? '' : ` The model said last: ${this.#lastText}`
  }

  [Symbol.dispose](): void {
    this.budget[Symbol.dispose]()
  }

  async #requestOnce(tools: LanguageModelV4FunctionTool[]): Promise<ModelResponse> {
    const { endpoint, masks, show, signal } = this.#options
    const masked = masks.stream()
    const response = await endpoint.ask({
      prompt: this.#conversation.prompt(),
      tools,
      signal: AbortSignal.any([signal, this.budget.signal]),
      onText: (piece) => show(masked.push(piece)),
      onNotice: (text) => this.#notice(text),
    })
    show(masked.flush())
    return response
  }

  #count({ text, calls, usage }: ModelResponse): void {
    const { masks, report } = this.#options
    if (text.trim() !== '') {
      this.#lastText = masks.mask(text.trim())
      report({ type: 'message', text: this.#lastText })
    }
    if (usage === null && !this.#isEstimated) {
      this.#isEstimated = true
      this.#notice('The endpoint reports no tokens: they are estimated from lengths.')
    }
    const written = text.length + calls.reduce((sum, { input }) => sum + input.length, 0)
    this.budget.spend(usage ?? estimate(this.#conversation.length, written))
    report(this.budget.usage)
  }

  #checkBudget(): void {
    const exceeded = this.budget.exceeded
    if (exceeded === null) return
    throw new AgentError(`Given up: ${exceeded}. --agent-limits sets how much may be used.${this.lastWords}`)
  }

  #notice(text: string): void {
    this.#options.report({ type: 'notice', text })
  }
}

const estimate = (read: number, written: number): TokenCount => ({
  input: Math.ceil(read / CHARACTERS_PER_TOKEN),
  output: Math.ceil(written / CHARACTERS_PER_TOKEN),
})
