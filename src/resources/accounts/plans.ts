import { eq, sql } from 'drizzle-orm'
import { BerthError } from '../../errors.ts'
import { once } from '../../runtime/once.ts'
import { type Database, ReadCache } from '../../storage/database.ts'
import { toUnits } from './credits.ts'
import type { AccountPlan } from './model.ts'
import { withOverrides } from './plan.ts'
import { accounts } from './table.ts'

/** The plan and the cap of an account. */
interface Terms {
  readonly plan: AccountPlan
  /** Units of credits that it may use in a calendar month. */
  readonly cap: number
}

/** The plans of all accounts: the instance's plan with each account's overrides. */
export class Plans {
  readonly #base: AccountPlan
  readonly #terms: ReadCache<Terms>
  readonly #account

  /** @param base the instance's plan */
  constructor(database: Pick<Database, 'queries' | 'version'>, base: AccountPlan) {
    this.#base = base
    this.#terms = new ReadCache(database.version)
    this.#account = once(() =>
      database.queries
        .select({ plan: accounts.plan, budgetCap: accounts.budgetCap })
        .from(accounts)
        .where(eq(accounts.id, sql.placeholder('accountId')))
        .prepare(),
    )
  }

  /** The plan of an account without overrides. */
  get base(): AccountPlan {
    return this.#base
  }

  /**
   * Returns the terms of an account.
   *
   * @throws BerthError 401 if the account was deleted while its request was running
   */
  of(accountId: string): Terms {
    return this.#terms.get(accountId, () => {
      const account = this.#account().get({ accountId })
      if (!account) {
        throw new BerthError('missing_or_invalid_api_key', 'The account of this API key has been removed.')
      }
      const plan = account.plan === null ? this.#base : withOverrides(this.#base, account.plan)
      return { plan, cap: account.budgetCap ?? toUnits(plan.monthly_cap) }
    })
  }
}
