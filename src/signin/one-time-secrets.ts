import type { Clock } from '../runtime/clock.ts'
import { hashOf } from '../runtime/secret.ts'

/** Largest number of pending secrets of one owner. The owner's oldest is dropped. @bound page */
const MAX_PER_OWNER = 20

/** Largest number of pending secrets in total. @bound page */
const MAX_WAITING = 500

interface WaitingValue<Value> {
  readonly owner: string
  readonly value: Value
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/**
 * Values in memory that can be retrieved once, with their secret, within a short time. They are stored by the hash of
 * the secret. An owner cannot displace the values of another.
 */
export class OneTimeSecrets<Value> {
  readonly #clock: Pick<Clock, 'now'>
  /** Oldest first. */
  readonly #waiting = new Map<string, WaitingValue<Value>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /**
   * Stores a value.
   *
   * @param owner such as an account
   * @param lifetimeMs measured by the clock
   * @returns when it expires, in milliseconds since 1970
   */
  keep(secret: string, value: Value, owner: string, lifetimeMs: number): number {
    const now = this.#clock.now()
    const expiresAt = now + lifetimeMs
    const own = [...this.#waiting].filter(([, kept]) => kept.owner === owner)
    for (const [key] of own.slice(0, Math.max(0, own.length - MAX_PER_OWNER + 1))) this.#waiting.delete(key)
    this.#waiting.set(keyOf(secret), { owner, value, expiresAt })
    for (const [key, kept] of this.#waiting) {
      if (this.#waiting.size > MAX_WAITING || kept.expiresAt <= now) this.#waiting.delete(key)
    }
    return expiresAt
  }

  /** Returns the value of a secret and keeps it; null if there is none or it has expired. */
  find(secret: string): Value | null {
    const kept = this.#waiting.get(keyOf(secret))
    return kept && kept.expiresAt > this.#clock.now() ? kept.value : null
  }

  /** Returns the value of a secret and removes it; null if there is none or it has expired. */
  take(secret: string): Value | null {
    const value = this.find(secret)
    this.#waiting.delete(keyOf(secret))
    return value
  }

  /** Returns all values that wait. */
  values(): Value[] {
    const now = this.#clock.now()
    return [...this.#waiting.values()].filter((kept) => kept.expiresAt > now).map(({ value }) => value)
  }
}

const keyOf = (secret: string): string => hashOf(secret).toString('base64')
