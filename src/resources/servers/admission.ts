import { BerthError } from '../../errors.ts'
import type { Plans } from '../accounts/plans.ts'
import type { TierName } from '../accounts/tiers.ts'

/**
 * Decides whether an account's plan allows another server. Servers that are starting count too, so parallel calls
 * cannot exceed the limit together.
 */
export class Admission {
  readonly #plans: Plans
  readonly #count: (accountId: string) => number
  readonly #comingUp = new Map<string, number>()

  /**
   * @param count returns the number of an account's recorded servers
   */
  constructor(plans: Plans, count: (accountId: string) => number) {
    this.#plans = plans
    this.#count = count
  }

  /**
   * Admits another server of a tier.
   *
   * @returns a function to call when the server is recorded or has failed; further calls do nothing
   * @throws BerthError 403 `plan_limit`
   */
  admit(accountId: string, tier: TierName): () => void {
    const { plan } = this.#plans.of(accountId)
    if (!plan.tiers.includes(tier)) {
      const allowed = plan.tiers.length === 0 ? 'none' : plan.tiers.join(', ')
      throw refusal(
        `The account's plan does not allow the tier ${tier}. Choose one that it allows (${allowed}), or add it to "tiers" of the plan.`,
      )
    }
    const comingUp = this.#comingUp.get(accountId) ?? 0
    if (comingUp + this.#count(accountId) >= plan.servers) {
      throw refusal(
        `The account has the ${plan.servers} servers that its plan allows. Delete one, or raise "servers" of the plan.`,
      )
    }
    this.#comingUp.set(accountId, comingUp + 1)
    let waiting = true
    return () => {
      if (waiting) this.#over(accountId)
      waiting = false
    }
  }

  #over(accountId: string): void {
    const left = (this.#comingUp.get(accountId) ?? 1) - 1
    if (left > 0) this.#comingUp.set(accountId, left)
    else this.#comingUp.delete(accountId)
  }
}

const refusal = (sentence: string): BerthError => new BerthError('plan_limit', sentence)
