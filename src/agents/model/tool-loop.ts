import { AgentError, type Assignment, type Outcome } from '../agent.ts'
import type { ToolExchange } from './conversation.ts'
import type { Dialogue } from './dialogue.ts'
import { CUT_OFF, FINISHED_EARLY, NUDGE } from './prompts.ts'
import type { ModelResponse } from './response.ts'
import { MalformedCall, offeredTools, type ToolOutcome, useTool } from './tools.ts'

/** Unusable responses in a row after which the work is given up. @bound peer */
const MAX_UNUSABLE = 5

/** Most calls of one response that are run. Their results are kept until all have run. @bound peer */
const MAX_CALLS = 100

/** Works on one goal: requests a response, runs the tools that it calls, and repeats until the model finishes. */
export class ToolLoop {
  readonly #assignment: Assignment
  readonly #dialogue: Dialogue
  #hasUsedTools = false
  /** Texts of responses in a row without a tool call. */
  #texts: string[] = []
  /** Unusable responses in a row. */
  #unusable = 0

  constructor(assignment: Assignment, dialogue: Dialogue) {
    this.#assignment = assignment
    this.#dialogue = dialogue
  }

  /** @throws as `Dialogue.ask` and the tools do */
  async run(): Promise<Outcome> {
    const tools = offeredTools(this.#assignment)
    for (;;) {
      const response = await this.#dialogue.request(tools)
      const outcome = await this.#handle(response)
      if (outcome) return outcome
    }
  }

  /**
   * Handles a response.
   *
   * @returns the outcome, or null if the work continues
   */
  async #handle(response: ModelResponse): Promise<Outcome | null> {
    if (response.calls.length > 0) return this.#useTools(response)
    if (response.stop === 'refusal')
      return failed(`The model declines to do this.${this.#dialogue.lastWords}`)
    if (response.stop === 'length') {
      this.#dialogue.add(response, [], CUT_OFF)
      this.#countUnusable('its responses are cut off at the largest length.')
      return null
    }
    return this.#handleText(response)
  }

  /** Handles a response without a call: explains once how a task ends; takes a second text for the result. */
  #handleText(response: ModelResponse): Outcome | null {
    this.#texts.push(response.text.trim())
    if (this.#texts.length === 1) {
      this.#dialogue.add(response, [], NUDGE)
      return null
    }
    const said = this.#texts.filter(Boolean).join('\n\n')
    if (said === '') return failed('The model answers with nothing, neither text nor calls of tools.')
    if (this.#hasUsedTools) return { status: 'completed', result: said }
    return failed(
      `The model has called no tool, so that nothing was done; it may not be able to. It said: ${said}`,
    )
  }

  /** Runs the tools that a response calls, one after the other. */
  async #useTools(response: ModelResponse): Promise<Outcome | null> {
    const exchanges: ToolExchange[] = []
    const problems: string[] = []
    this.#texts = []
    const calls = response.calls.slice(0, MAX_CALLS)
    const leftOut = response.calls.length - calls.length
    for (const { toolCallId: id, toolName, input, providerMetadata: signed } of calls) {
      // The next request fails with the reason, before it is sent.
      if (this.#dialogue.budget.signal.aborted) return null
      const call = { id, tool: nameOf(toolName), input: parseObject(input), ...(signed ? { signed } : {}) }
      const result = await this.#useTool(toolName, input).catch((error: unknown) => {
        if (!(error instanceof MalformedCall)) throw error
        problems.push(`${call.tool}: ${error.message}`)
        return {
          text: `${error.message} ${response.stop === 'length' ? CUT_OFF : 'Correct the call.'}`,
          ok: false,
        }
      })
      if ('text' in result) exchanges.push({ ...call, output: result.text, ok: result.ok })
      else if (exchanges.every(({ ok }) => ok)) return result.finished
      else exchanges.push({ ...call, output: FINISHED_EARLY, ok: false })
    }
    this.#dialogue.add(response, exchanges, leftOut === 0 ? null : tooManyCalls(leftOut))
    if (leftOut > 0) {
      const text = `The model called ${response.calls.length} tools at once, of which ${MAX_CALLS} were used.`
      this.#assignment.report({ type: 'notice', text })
    }
    for (const problem of problems) {
      this.#assignment.report({
        type: 'notice',
        text: `The model called a tool as it cannot be called. ${problem}`,
      })
    }
    if (problems.length < exchanges.length) this.#unusable = 0
    else this.#countUnusable(`the last call was ${problems.at(-1)}`)
    return null
  }

  async #useTool(tool: string, input: string): Promise<ToolOutcome> {
    this.#assignment.signal.throwIfAborted()
    const result = await useTool(tool, input, { assignment: this.#assignment, budget: this.#dialogue.budget })
    this.#hasUsedTools = true
    return result
  }

  /** @throws AgentError if it was so time after time */
  #countUnusable(why: string): void {
    this.#unusable += 1
    if (this.#unusable < MAX_UNUSABLE) return
    throw new AgentError(
      `Given up: ${MAX_UNUSABLE} times in a row nothing of what the model answered could be used; ${why}`,
    )
  }
}

const tooManyCalls = (leftOut: number): string =>
  `The last ${leftOut} calls of that answer were left out: call at most ${MAX_CALLS} tools at once.`

const failed = (result: string): Outcome => ({ status: 'failed', result })

/** Returns a tool name that endpoints accept, whatever the model made up. */
const nameOf = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, 64) || '_'

/**
 * Most levels of objects and lists in arguments: deeper ones can be parsed, but perhaps not serialized.
 * @bound client
 */
const MAX_DEPTH = 50

/** Reports whether a value is nested deeper than `levels`. */
const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1)))

/** Arguments as they go back to the endpoint: none if they are no object, or a deep one. */
function parseObject(input: string): ToolExchange['input'] {
  try {
    const read: unknown = JSON.parse(input)
    if (typeof read === 'object' && read !== null && !Array.isArray(read) && !isDeeper(read, MAX_DEPTH))
      return { ...read }
  } catch {
    // Not valid JSON: the call's own result says so.
  }
  return {}
}
