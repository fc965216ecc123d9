import type { AgentLimits } from '../../config/agents.ts'
import type { AgentEvent } from '../events.ts'
import { TimeBudget } from '../time-budget.ts'
import type { TokenCount } from './response.ts'

/**
 * What one piece of work may use, and has used. Its time is the system's, not berth's clock: with a stopped clock,
 * work would never end. Dispose of it.
 */
export class ModelBudget implements Disposable {
  readonly #limits: AgentLimits
  readonly #timeUp = new AbortController()
  readonly #time: TimeBudget
  #answers = 0
  #input = 0
  #output = 0

  constructor(limits: AgentLimits) {
    this.#limits = limits
    this.#time = new TimeBudget(limits.timeMs, () => this.#timeUp.abort())
    this.#time.run()
  }

  /** Fires when the time is up. */
  get signal(): AbortSignal {
    return this.#timeUp.signal
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return this.#time.leftMs
  }

  /** Counts one response and its tokens. */
  spend({ input, output }: TokenCount): void {
    this.#answers += 1
    this.#input += input
    this.#output += output
  }

  /** Runs `work` without counting its time: it waits for a person. */
  async untimed<T>(work: () => Promise<T>): Promise<T> {
    this.#time.pause()
    try {
      return await work()
    } finally {
      this.#time.run()
    }
  }

  /** The usage so far. */
  get usage(): AgentEvent & { type: 'usage' } {
    const cost = this.#cost
    const used = { type: 'usage' as const, inputTokens: this.#input, outputTokens: this.#output }
    return cost === null ? used : { ...used, cost }
  }

  /** Why no more may be used, for a person; null while there is some left. */
  get exceeded(): string | null {
    const { steps, tokens, cost, timeMs } = this.#limits
    if (this.#timeUp.signal.aborted || this.leftMs === 0) {
      return `it took longer than ${Math.round(timeMs / 1_000)} s ("time")`
    }
    if (this.#answers >= steps) return `the model has answered ${steps} times ("steps")`
    const read = this.#input + this.#output
    if (read >= tokens) return `${read} of ${tokens} tokens are used ("tokens")`
    const spent = this.#cost
    if (cost !== null && spent !== null && spent >= cost) return `$${spent} of $${cost} are spent ("cost")`
    return null
  }

  [Symbol.dispose](): void {
    this.#time.pause()
  }

  /** US dollars, rounded to a millionth; null if a price is not known. */
  get #cost(): number | null {
    const { inputPrice, outputPrice } = this.#limits
    if (inputPrice === null || outputPrice === null) return null
    return Math.round(this.#input * inputPrice + this.#output * outputPrice) / 1e6
  }
}
