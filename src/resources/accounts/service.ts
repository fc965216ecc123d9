import { asc, desc, eq, sql } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import { toCredits, toUnits } from './credits.ts'
import type { Metering } from './metering.ts'
import type { Account, PlanOverrides } from './model.ts'
import { withOverrides } from './plan.ts'
import type { Plans } from './plans.ts'
import { accounts } from './table.ts'

/** The operations on keys that accounts need. */
interface AccountKeys {
  /** Creates an account-wide key and returns its plaintext, which may be given. */
  issue(accountId: string, label: string, chosen?: string): string
  /** Deletes every key of an account. */
  revokeAll(accountId: string): void
}

/** The operations on grants that accounts need. */
export interface AccountSignIn {
  /** Ends the access of every program and every browser to an account. */
  revokeAll(accountId: string): void
}

/** The operations on servers that accounts need. */
interface AccountServers {
  /** Returns the number of an account's servers. */
  count(accountId: string): number
  /** Deletes all servers of an account. */
  deleteAll(accountId: string): Promise<void>
}

/** Dependencies of the accounts. */
export interface AccountsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  plans: Plans
  metering: Metering
  changes: Changes
  keys: AccountKeys
  signIn: AccountSignIn
  servers: AccountServers
}

/** Settings of an account. `null` restores the instance's default. */
interface AccountSettings {
  label?: string
  /** Overrides of the instance's plan. They replace all earlier ones. */
  plan?: PlanOverrides | null
  /** Credits per month. */
  budget_cap?: number | null
}

/** Changes to an account. */
interface AccountChanges extends AccountSettings {
  /** Further overrides of the instance's plan. Earlier ones stay. */
  limits?: PlanOverrides
  /** Credits of this month. */
  credits_used?: number
}

/** Creates, changes and deletes accounts for the operator of the instance. */
export class AccountsService {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #plans: Plans
  readonly #metering: Metering
  readonly #changes: Changes
  readonly #keys: AccountKeys
  readonly #signIn: AccountSignIn
  readonly #servers: AccountServers

  constructor({
    queries,
    clock,
    ids,
    plans,
    metering,
    changes,
    keys,
    signIn,
    servers,
  }: AccountsDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#plans = plans
    this.#metering = metering
    this.#changes = changes
    this.#keys = keys
    this.#signIn = signIn
    this.#servers = servers
  }

  /** Lists all accounts, newest first. */
  list(): Account[] {
    const rows = this.#queries.select().from(accounts).orderBy(desc(sql`rowid`)).all()
    return rows.map((row) => this.#view(row))
  }

  /** Returns an account. @throws BerthError 404 */
  get(id: string): Account {
    return this.#view(this.#row(id))
  }

  /**
   * Creates an account with an account-wide key.
   *
   * @param key the key; by default a random one
   * @throws BerthError 400
   */
  create(settings: AccountSettings, key?: string): { id: string; api_key: string } {
    const { plan = null, budget_cap = null } = settings
    return this.#queries.transaction(() => {
      const id = this.#ids.next('acct', (taken) => this.#find(taken) !== undefined)
      const label = settings.label ?? ''
      this.#queries
        .insert(accounts)
        .values({ id, label, plan, budgetCap: capOf(budget_cap), createdAt: this.#clock.now() })
        .run()
      this.#changes.notify('account', id, id)
      return { id, api_key: this.#keys.issue(id, 'First key', key) }
    })
  }

  /**
   * Changes an account. If that uses up its budget, resolves when its servers sleep.
   *
   * @throws BerthError 400, 404
   */
  async update(id: string, changes: AccountChanges): Promise<Account> {
    this.#change(id, changes)
    await this.#metering.whenAsleep(id)
    return this.#view(this.#row(id))
  }

  /**
   * Deletes an account with everything in it: first its keys, OAuth grants and sessions, then its servers, then itself.
   *
   * @throws BerthError 404, 400 for the first account
   */
  async delete(id: string): Promise<void> {
    this.#row(id)
    const first = this.#queries
      .select({ id: accounts.id })
      .from(accounts)
      .orderBy(asc(sql`rowid`))
      .limit(1)
      .get()
    if (first?.id === id) {
      throw badRequest(
        `The account "${id}" is the first one, which the instance starts with. Delete its servers instead.`,
      )
    }
    this.#keys.revokeAll(id)
    this.#signIn.revokeAll(id)
    // An earlier request may still create a server.
    while (this.#servers.count(id) > 0) await this.#servers.deleteAll(id)
    this.#queries.delete(accounts).where(eq(accounts.id, id)).run()
    this.#changes.notify('account', id, id)
  }

  #change(id: string, changes: AccountChanges): void {
    const { plan, limits, budget_cap, credits_used } = changes
    this.#queries.transaction(() => {
      const row = this.#row(id)
      this.#metering.accrue(id)
      const columns = {
        ...(changes.label === undefined ? {} : { label: changes.label }),
        ...(plan === undefined && limits === undefined
          ? {}
          : { plan: withOverrides((plan === undefined ? row.plan : plan) ?? {}, limits ?? {}) }),
        ...(budget_cap === undefined ? {} : { budgetCap: capOf(budget_cap) }),
      }
      if (Object.keys(columns).length > 0) {
        this.#queries.update(accounts).set(columns).where(eq(accounts.id, id)).run()
        this.#metering.applyTerms(id)
      }
      if (credits_used !== undefined) this.#metering.setUsed(id, credits_used)
    })
  }

  #find(id: string): typeof accounts.$inferSelect | undefined {
    return this.#queries.select().from(accounts).where(eq(accounts.id, id)).get()
  }

  #row(id: string): typeof accounts.$inferSelect {
    const row = this.#find(id)
    if (!row) throw notFound(`The account "${id}"`)
    return row
  }

  #view({ id, label, createdAt }: typeof accounts.$inferSelect): Account {
    const { plan, cap } = this.#plans.of(id)
    const { used, month } = this.#metering.budget(id)
    return {
      id,
      label,
      created_at: toIso(createdAt),
      plan,
      budget_cap: toCredits(cap),
      credits_used: used,
      month,
      servers: this.#servers.count(id),
    }
  }
}

/** Converts credits to units; null stays null. */
const capOf = (credits: number | null): number | null => (credits === null ? null : toUnits(credits))
