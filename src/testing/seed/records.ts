import { and, asc, eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { type FixtureKind, fixtures } from './table.ts'

/** Which id stands behind a name. */
export type FixtureRow = typeof fixtures.$inferSelect

/** Remembers what fixtures files have made, so that a second start makes nothing twice. */
export class FixtureRecords {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** What stands behind a name; it may be gone. */
  find(kind: FixtureKind, name: string): FixtureRow | undefined {
    return this.#queries.select().from(fixtures).where(named(kind, name)).get()
  }

  /** Remembers what stands behind a name from now on. */
  keep(kind: FixtureKind, name: string, id: string, source: string | null = null): void {
    this.#queries
      .insert(fixtures)
      .values({ kind, name, id, source })
      .onConflictDoUpdate({ target: [fixtures.kind, fixtures.name], set: { id, source } })
      .run()
  }

  /** Forgets what stands behind a name. */
  forget(kind: FixtureKind, name: string): void {
    this.#queries.delete(fixtures).where(named(kind, name)).run()
  }

  /** All of a kind, by name. */
  list(kind: FixtureKind): FixtureRow[] {
    const rows = this.#queries.select().from(fixtures).where(eq(fixtures.kind, kind))
    return rows.orderBy(asc(fixtures.name)).all()
  }
}

const named = (kind: FixtureKind, name: string) => and(eq(fixtures.kind, kind), eq(fixtures.name, name))
