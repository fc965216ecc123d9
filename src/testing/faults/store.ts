import { asc, eq, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import type { FaultEffect, FaultText, RequestFacts } from './fault.ts'
import { type Matcher, matcherOf, strikes } from './match.ts'
import { type FaultRow, faults } from './table.ts'

/** What the store needs. */
export interface FaultStoreParts {
  queries: Queries
  ids: Ids
  clock: Clock
  logger: Logger
  /** Gives faults their seeds that have none. */
  random: Random
  /** Has the connection of a request closed without an answer, seconds later: the way for HEAD. */
  expire: (request: Request) => void
}

/** What becomes of a request. */
export interface Strike {
  /** Milliseconds that it waits first. */
  readonly delayMs: number
  /** What happens to it then, and the fault that says so; null where it goes on. */
  readonly effect: { readonly of: string; readonly does: Exclude<FaultEffect, { delay_ms: number }> } | null
}

/** A fault as it is tried. */
interface Rule {
  row: FaultRow
  matches: Matcher
}

/**
 * The faults that hold, in the order in which they were set. They lie in the database with their counts, so that they
 * survive a restart and belong to snapshots.
 */
export class FaultStore {
  readonly #parts: FaultStoreParts
  readonly #ending = new AbortController()
  #rules: Rule[] = []
  #any = false

  constructor(parts: FaultStoreParts) {
    this.#parts = parts
    // Plain statements: the first use of a table's builder takes a start a millisecond.
    if (parts.queries.values(sql`SELECT 1 FROM faults LIMIT 1`).length === 0) return
    this.#rows(parts.queries.select().from(faults).orderBy(asc(faults.position)).all())
    const [[count = 0] = []] = parts.queries.values<[number]>(
      sql`SELECT COUNT(*) FROM faults WHERE id NOT IN (SELECT id FROM fixtures WHERE kind = 'fault')`,
    )
    if (count === 0) return
    parts.logger.warn('faults that were set before hold on; "berth faults clear" removes them', { count })
  }

  /** Whether there is any: what every request asks. */
  get any(): boolean {
    return this.#any
  }

  /** Fires when berth stops or is reset: no request waits any longer. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Has the connection of a request closed without an answer, seconds later. */
  expire(request: Request): void {
    this.#parts.expire(request)
  }

  /** Ends all delays. */
  stop(): void {
    this.#ending.abort()
  }

  /** How many there are. */
  get count(): number {
    return this.#rules.length
  }

  /** All, in the order in which they are tried. */
  list(): FaultRow[] {
    return this.#rules.map(({ row }) => row)
  }

  /** Adds a fault behind the others. One that goes by chance is given a seed where it has none. */
  add(fault: FaultText): FaultRow {
    const { queries, ids, clock } = this.#parts
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
    this.#rows([...this.list(), row])
    return row
  }

  /** Removes one; undefined where there is none of this id. */
  remove(id: string): FaultRow | undefined {
    const rule = this.#find(id)
    if (!rule) return undefined
    this.#parts.queries.delete(faults).where(eq(faults.id, id)).run()
    this.#rows(this.list().filter((row) => row.id !== id))
    return rule.row
  }

  /** Removes those that are for an account alone. */
  removeOf(accountId: string): void {
    for (const { id, fault } of this.list()) if (fault.match.account_id === accountId) this.remove(id)
  }

  /** Removes all. @returns how many there were */
  clear(): number {
    const { count } = this
    this.#parts.queries.delete(faults).run()
    this.#rows([])
    return count
  }

  /**
   * Decides about a request and counts it: it waits for all delays that strike, and then the first other effect that
   * strikes happens. Those behind it have matched, but do not strike.
   */
  strike(request: RequestFacts): Strike {
    const matching = this.#rules.filter(({ matches }) => matches(request)).map(({ row }) => row)
    let delayMs = 0
    let effect: Strike['effect'] = null
    for (const row of matching) {
      row.matched += 1
      if (!strikes(row.fault, row.matched, row.hits)) continue
      const { effect: does } = row.fault
      if ('delay_ms' in does) delayMs += does.delay_ms
      else if (effect === null) effect = { of: row.id, does }
      else continue
      row.hits += 1
    }
    if (matching.length > 0) this.#keepCounts(matching)
    return { delayMs, effect }
  }

  /** On a full disk they are kept in memory alone: the request fares no worse. */
  #keepCounts(rows: readonly FaultRow[]): void {
    const { queries, logger } = this.#parts
    try {
      queries.transaction(() => {
        for (const { id, matched, hits } of rows) {
          queries.update(faults).set({ matched, hits }).where(eq(faults.id, id)).run()
        }
      })
    } catch (error) {
      logger.warn('the counts of faults cannot be written', { error })
    }
  }

  #find(id: string): Rule | undefined {
    return this.#rules.find(({ row }) => row.id === id)
  }

  #rows(rows: readonly FaultRow[]): void {
    this.#rules = rows.map((row) => ({ row, matches: matcherOf(row.fault.match) }))
    this.#any = rows.length > 0
  }

  #seed(): number {
    return Buffer.from(this.#parts.random.bytes(4)).readUInt32BE()
  }
}
