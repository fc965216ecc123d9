import type { Clock } from '../runtime/clock.ts'
import { hashOf } from '../runtime/secret.ts'

/** How many secrets of one owner wait at a time: more than these nobody comes with. The owner's oldest makes room. */
const MOST_OF_OWNER = 20

/** And of all owners. */
const MOST_WAITING = 500

interface Kept<Value> {
  readonly owner: string
  readonly value: Value
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/**
 * What waits for somebody to come with a secret, once and not for long: in memory, each found by the hash of its secret.
 * No owner pushes out what another one waits for.
 */
export class OneTimeSecrets<Value> {
  readonly #clock: Pick<Clock, 'now'>
  /** Oldest first. */
  readonly #kept = new Map<string, Kept<Value>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /**
   * Has a value wait.
   *
   * @param owner whom it belongs to, such as an account
   * @param lifetimeMs by the clock
   * @returns when it is over, in milliseconds since 1970
   */
  keep(secret: string, value: Value, owner: string, lifetimeMs: number): number {
    const now = this.#clock.now()
    const expiresAt = now + lifetimeMs
    const own = [...this.#kept].filter(([, kept]) => kept.owner === owner)
    for (const [key] of own.slice(0, Math.max(0, own.length - MOST_OF_OWNER + 1))) this.#kept.delete(key)
    this.#kept.set(keyOf(secret), { owner, value, expiresAt })
    for (const [key, kept] of this.#kept) {
      if (this.#kept.size > MOST_WAITING || kept.expiresAt <= now) this.#kept.delete(key)
    }
    return expiresAt
  }

  /** What waits for a secret, and goes on to wait; null for nothing, or not any more. */
  find(secret: string): Value | null {
    const kept = this.#kept.get(keyOf(secret))
    return kept && kept.expiresAt > this.#clock.now() ? kept.value : null
  }

  /** What waits for a secret, and waits no longer; null for nothing, or not any more. */
  take(secret: string): Value | null {
    const value = this.find(secret)
    this.#kept.delete(keyOf(secret))
    return value
  }

  /** All that waits. */
  values(): Value[] {
    const now = this.#clock.now()
    return [...this.#kept.values()].filter((kept) => kept.expiresAt > now).map(({ value }) => value)
  }
}

const keyOf = (secret: string): string => hashOf(secret).toString('base64')
