import type { AgentLimits } from '../../config/agents.ts'
import { thisMachine } from '../../runtime/clock.ts'
import type { AgentEvent } from '../events.ts'
import type { Tokens } from './response.ts'

/** The longest delay that the system's timers take. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

/**
 * What one piece of work may use, and has used. Its time is the system's, not berth's clock: with a stopped clock,
 * work would never end. Dispose of it.
 */
export class Budget implements Disposable {
  readonly #limits: AgentLimits
  readonly #timeUp = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** By the machine's monotonic source. */
  #endsAt: number
  #answers = 0
  #input = 0
  #output = 0

  constructor(limits: AgentLimits) {
    this.#limits = limits
    this.#endsAt = thisMachine.monotonic() + limits.timeMs
    this.#arm()
  }

  /** Fires when the time is up. */
  get signal(): AbortSignal {
    return this.#timeUp.signal
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - thisMachine.monotonic())
  }

  /** Counts one response and its tokens. */
  spend({ input, output }: Tokens): void {
    this.#answers += 1
    this.#input += input
    this.#output += output
  }

  /** Runs `work` without counting its time: it waits for a person. */
  async untimed<T>(work: () => Promise<T>): Promise<T> {
    clearTimeout(this.#timer)
    const left = this.leftMs
    try {
      return await work()
    } finally {
      this.#endsAt = thisMachine.monotonic() + left
      this.#arm()
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
    clearTimeout(this.#timer)
  }

  /** US dollars, rounded to a millionth; null if a price is not known. */
  get #cost(): number | null {
    const { inputPrice, outputPrice } = this.#limits
    if (inputPrice === null || outputPrice === null) return null
    return Math.round(this.#input * inputPrice + this.#output * outputPrice) / 1e6
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const delay = Math.min(this.leftMs, LONGEST_DELAY_MS)
    this.#timer = setTimeout(() => (this.leftMs > 0 ? this.#arm() : this.#timeUp.abort()), delay)
  }
}
