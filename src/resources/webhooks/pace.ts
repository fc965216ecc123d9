/** The pause after the second failure in a row; it doubles with each further one. */
const FIRST_PAUSE_MS = 10

const LONGEST_PAUSE_MS = 100

/**
 * Paces webhooks whose receiver keeps failing: a long queue of events that all fail at once would
 * otherwise take the processor from those that get through. It goes by the machine's time: it is about
 * work, not about dates.
 */
export class Pace {
  readonly #onEnd: (webhookId: string) => void
  /** Failures in a row. */
  readonly #failures = new Map<string, number>()
  readonly #pauses = new Map<string, ReturnType<typeof setTimeout>>()

  /** @param onEnd is called when a webhook's pause is over */
  constructor(onEnd: (webhookId: string) => void) {
    this.#onEnd = onEnd
  }

  /** How many webhooks pause. */
  get pausing(): number {
    return this.#pauses.size
  }

  /** Whether a webhook pauses. */
  holds(webhookId: string): boolean {
    return this.#pauses.has(webhookId)
  }

  /** An attempt has ended: what comes next may have to wait. */
  ended(webhookId: string, failed: boolean): void {
    if (!failed) return void this.#failures.delete(webhookId)
    const failures = (this.#failures.get(webhookId) ?? 0) + 1
    this.#failures.set(webhookId, failures)
    if (failures < 2) return
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 2), LONGEST_PAUSE_MS)
    const end = () => {
      this.#pauses.delete(webhookId)
      this.#onEnd(webhookId)
    }
    this.#pauses.set(webhookId, setTimeout(end, pause))
  }

  /** A webhook is gone. */
  forget(webhookId: string): void {
    clearTimeout(this.#pauses.get(webhookId))
    this.#pauses.delete(webhookId)
    this.#failures.delete(webhookId)
  }

  /** Ends all pauses; nobody is told. */
  stop(): void {
    for (const webhookId of [...this.#pauses.keys()]) this.forget(webhookId)
  }
}
