/** Largest number of attempts in their first second. @bound peer */
const MAX_BUSY = 64

/** Largest number of running attempts. @bound peer */
const MAX_RUNNING = 1_024

/** Milliseconds after which an attempt is taken to wait for its receiver. It then costs no more than a socket. */
const BUSY_MS = 1_000

/**
 * Limits the running attempts. An attempt that waits for its receiver frees its slot, so many silent receivers cannot
 * delay the others.
 */
export class AttemptSlots {
  readonly #onFree: () => void
  #busy = 0
  #all = 0

  /**
   * @param onFree called when a slot becomes free while its attempt continues
   */
  constructor(onFree: () => void) {
    this.#onFree = onFree
  }

  /** Whether another attempt may begin. */
  get hasFree(): boolean {
    return this.#busy < MAX_BUSY && this.#all < MAX_RUNNING
  }

  /** Takes a slot. The returned function releases it. */
  take(): () => void {
    this.#busy += 1
    this.#all += 1
    let busy = true
    const stopBeingBusy = () => {
      if (busy) this.#busy -= 1
      busy = false
    }
    const timer = setTimeout(() => {
      stopBeingBusy()
      this.#onFree()
    }, BUSY_MS)
    return () => {
      clearTimeout(timer)
      stopBeingBusy()
      this.#all -= 1
    }
  }
}

/** Milliseconds to pause after the second failure in a row. Each further failure doubles the pause. */
const FIRST_PAUSE_MS = 10

const MAX_PAUSE_MS = 100

/**
 * Pauses webhooks whose receiver keeps failing. A long queue of failing events would otherwise take the processor
 * from other deliveries. Pauses use real time, not this instance's clock.
 */
export class FailurePauses {
  readonly #onEnd: (webhookId: string) => void
  /** Consecutive failures by webhook. */
  readonly #failures = new Map<string, number>()
  readonly #pauses = new Map<string, ReturnType<typeof setTimeout>>()

  /**
   * @param onEnd called when a webhook's pause is over
   */
  constructor(onEnd: (webhookId: string) => void) {
    this.#onEnd = onEnd
  }

  /** Returns the number of webhooks that pause. */
  get count(): number {
    return this.#pauses.size
  }

  /** Reports whether a webhook pauses. */
  isPaused(webhookId: string): boolean {
    return this.#pauses.has(webhookId)
  }

  /** Records the end of an attempt. A repeated failure begins a pause. */
  attemptEnded(webhookId: string, failed: boolean): void {
    if (!failed) return void this.#failures.delete(webhookId)
    const failures = (this.#failures.get(webhookId) ?? 0) + 1
    this.#failures.set(webhookId, failures)
    if (failures < 2) return
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 2), MAX_PAUSE_MS)
    const end = () => {
      this.#pauses.delete(webhookId)
      this.#onEnd(webhookId)
    }
    this.#pauses.set(webhookId, setTimeout(end, pause))
  }

  /** Forgets a webhook that was removed. */
  forget(webhookId: string): void {
    clearTimeout(this.#pauses.get(webhookId))
    this.#pauses.delete(webhookId)
    this.#failures.delete(webhookId)
  }

  /** Ends all pauses without a call of `onEnd`. */
  stop(): void {
    for (const webhookId of [...this.#pauses.keys()]) this.forget(webhookId)
  }
}
