import { and, asc, eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { type FixtureKind, fixtures } from './table.ts'

/** The id of a named fixture. */
type FixtureRow = typeof fixtures.$inferSelect

/** Records what fixtures files have created, so that a second start creates nothing twice. */
export class FixtureRecords {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** Returns the record of a name; what it refers to may have been deleted. */
  find(kind: FixtureKind, name: string): FixtureRow | undefined {
    return this.#queries.select().from(fixtures).where(named(kind, name)).get()
  }

  /** Sets the id of a name. */
  keep(kind: FixtureKind, name: string, id: string, source: string | null = null): void {
    this.#queries
      .insert(fixtures)
      .values({ kind, name, id, source })
      .onConflictDoUpdate({ target: [fixtures.kind, fixtures.name], set: { id, source } })
      .run()
  }

  /** Removes a name's record. */
  forget(kind: FixtureKind, name: string): void {
    this.#queries.delete(fixtures).where(named(kind, name)).run()
  }

  /** Returns all of a kind, by name. */
  list(kind: FixtureKind): FixtureRow[] {
    const rows = this.#queries.select().from(fixtures).where(eq(fixtures.kind, kind))
    return rows.orderBy(asc(fixtures.name)).all()
  }
}

const named = (kind: FixtureKind, name: string) => and(eq(fixtures.kind, kind), eq(fixtures.name, name))
