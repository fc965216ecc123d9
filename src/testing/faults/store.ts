import { asc, eq, sql } from 'drizzle-orm'
import type { Changes } from '../../resources/changes/types.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import type { FaultEffect, FaultText, RequestFacts } from './fault.ts'
import { appliesTo, type FaultMatcher, matcherOf } from './match.ts'
import { type FaultRow, faults } from './table.ts'

/** Options of a `FaultStore`. */
interface FaultStoreOptions {
  queries: Queries
  ids: Ids
  clock: Clock
  changes: Changes
  logger: Logger
  /** Gives faults their seeds that have none. */
  random: Random
  /** Closes a request's connection without a response, seconds later; used for HEAD. */
  expire: (request: Request) => void
}

/** The effect of the faults on one request. */
export interface AppliedFaults {
  /** Milliseconds that it waits first. */
  readonly delayMs: number
  /** The effect after the delay, with its fault's id; null to pass the request on. */
  readonly effect: {
    readonly faultId: string
    readonly effect: Exclude<FaultEffect, { delay_ms: number }>
  } | null
  /** All that applied, in the order in which they were set. */
  readonly applied: readonly { readonly id: string; readonly effect: FaultEffect }[]
}

/** A fault with its matcher. */
interface Rule {
  row: FaultRow
  matches: FaultMatcher
}

/**
 * The current faults, in the order in which they were set. They are stored in the database with their counts, so they
 * survive a restart and are part of snapshots.
 */
export class FaultStore {
  readonly #options: FaultStoreOptions
  readonly #ending = new AbortController()
  #rules: Rule[] = []
  #any = false

  constructor(parts: FaultStoreOptions) {
    this.#options = parts
    // Plain statements: the first use of a table's builder takes a start a millisecond.
    if (parts.queries.values(sql`SELECT 1 FROM faults LIMIT 1`).length === 0) return
    this.#setRows(parts.queries.select().from(faults).orderBy(asc(faults.position)).all())
    const [[count = 0] = []] = parts.queries.values<[number]>(
      sql`SELECT COUNT(*) FROM faults WHERE id NOT IN (SELECT id FROM fixtures WHERE kind = 'fault')`,
    )
    if (count === 0) return
    parts.logger.warn('faults that were set before hold on; "berth faults clear" removes them', { count })
  }

  /** Whether there are any faults. Every request reads this. */
  get any(): boolean {
    return this.#any
  }

  /** Fires when berth stops or is reset: no request waits any longer. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Closes a request's connection without a response, seconds later. */
  expire(request: Request): void {
    this.#options.expire(request)
  }

  /** Ends all delays. */
  stop(): void {
    this.#ending.abort()
  }

  /** How many there are. */
  get count(): number {
    return this.#rules.length
  }

  /** Returns all faults, in the order in which they are tried. */
  list(): FaultRow[] {
    return this.#rules.map(({ row }) => row)
  }

  /** Adds a fault after the others. One with a probability gets a seed if it has none. */
  add(fault: FaultText): FaultRow {
    const { queries, ids, clock } = this.#options
    const seeded = fault.probability === undefined ? fault : { seed: this.#seed(), ...fault }
    const row = queries
      .insert(faults)
      .values({
        id: ids.next('flt', (id) => this.#find(id) !== undefined),
        fault: seeded,
        createdAt: clock.now(),
      })
      .returning()
      .get()
    this.#setRows([...this.list(), row])
    this.#notify(row)
    return row
  }

  /** Removes a fault; returns undefined if the id is unknown. */
  remove(id: string): FaultRow | undefined {
    const rule = this.#find(id)
    if (!rule) return undefined
    this.#options.queries.delete(faults).where(eq(faults.id, id)).run()
    this.#setRows(this.list().filter((row) => row.id !== id))
    this.#notify(rule.row)
    return rule.row
  }

  /** Removes the faults that match only this account. */
  removeForAccount(accountId: string): void {
    for (const { id, fault } of this.list()) if (fault.match.account_id === accountId) this.remove(id)
  }

  /** Removes all. @returns how many there were */
  clear(): number {
    const cleared = this.list()
    this.#options.queries.delete(faults).run()
    this.#setRows([])
    for (const row of cleared) this.#notify(row)
    return cleared.length
  }

  /**
   * Decides about a request and counts it: it waits for all delays that apply, and then the first other effect that
   * applies happens. Those behind it have matched, but do not apply.
   */
  apply(request: RequestFacts): AppliedFaults {
    const matching = this.#rules.filter(({ matches }) => matches(request)).map(({ row }) => row)
    let delayMs = 0
    let effect: AppliedFaults['effect'] = null
    const applied: { id: string; effect: FaultEffect }[] = []
    for (const row of matching) {
      row.matched += 1
      if (!appliesTo(row.fault, row.matched, row.hits)) continue
      const { effect: own } = row.fault
      if ('delay_ms' in own) delayMs += own.delay_ms
      else if (effect === null) effect = { faultId: row.id, effect: own }
      else continue
      row.hits += 1
      applied.push({ id: row.id, effect: own })
    }
    if (matching.length > 0) this.#saveCounts(matching)
    return { delayMs, effect, applied }
  }

  /** Writes the counts. On a full disk they are kept in memory only, and the request is not affected. */
  #saveCounts(rows: readonly FaultRow[]): void {
    const { queries, logger } = this.#options
    try {
      queries.transaction(() => {
        for (const { id, matched, hits } of rows) {
          queries.update(faults).set({ matched, hits }).where(eq(faults.id, id)).run()
        }
      })
    } catch (error) {
      logger.warn('the counts of faults cannot be written', { error })
    }
    for (const row of rows) this.#notify(row)
  }

  #notify({ id }: FaultRow): void {
    this.#options.changes.notify('fault', id, null)
  }

  /** Returns a fault, or undefined if there is none with this id. */
  find(id: string): FaultRow | undefined {
    return this.#find(id)?.row
  }

  #find(id: string): Rule | undefined {
    return this.#rules.find(({ row }) => row.id === id)
  }

  #setRows(rows: readonly FaultRow[]): void {
    this.#rules = rows.map((row) => ({ row, matches: matcherOf(row.fault.match) }))
    this.#any = rows.length > 0
  }

  #seed(): number {
    return Buffer.from(this.#options.random.bytes(4)).readUInt32BE()
  }
}
