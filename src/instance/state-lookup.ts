import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { accounts } from '../resources/accounts/table.ts'
import { builds, UNFINISHED_STATUSES } from '../resources/builds/table.ts'
import { deployments } from '../resources/deployments/table.ts'
import { projects } from '../resources/projects/table.ts'
import { tasks, unfinished } from '../resources/tasks/table.ts'
import type { Queries } from '../storage/database.ts'

/** Looks into the state for what is recorded there, without loading the services that write it. */
export class StateLookup {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  hasAccount(id: string): boolean {
    return this.#has(accounts, eq(accounts.id, id))
  }

  ownsProject(accountId: string, id: string): boolean {
    return this.#has(projects, and(eq(projects.id, id), eq(projects.accountId, accountId)))
  }

  /** Reports whether a server, or any, has a project or a deployment. */
  hasApps(serverId?: string): boolean {
    return [projects, deployments].some((table) =>
      this.#has(table, serverId === undefined ? undefined : eq(table.serverId, serverId)),
    )
  }

  hasUnfinishedTasks(): boolean {
    return this.#has(tasks, unfinished())
  }

  hasUnfinishedBuilds(): boolean {
    return this.#has(builds, inArray(builds.status, [...UNFINISHED_STATUSES]))
  }

  /** Returns the ports of all sites. */
  sitePorts(): number[] {
    return [projects, deployments].flatMap((table) => {
      const rows = this.#queries.select({ port: table.port }).from(table).all()
      return rows.map(({ port }) => port)
    })
  }

  #has(table: SQLiteTable, where: SQL | undefined): boolean {
    const found = this.#queries.select({ one: sql`1` }).from(table).where(where)
    return found.limit(1).get() !== undefined
  }
}
