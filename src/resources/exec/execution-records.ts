import { and, desc, eq, ne, sql } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { type ExecutionRow, executions } from './table.ts'

/** Stores executions. */
export class ExecutionRecords {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** Returns all executions, oldest first. */
  listAll(): ExecutionRow[] {
    return this.#queries.select().from(executions).orderBy(sql`rowid`).all()
  }

  /** Returns the executions of a server, newest first. */
  listByServer(serverId: string): ExecutionRow[] {
    const found = this.#queries.select().from(executions).where(eq(executions.serverId, serverId))
    return found.orderBy(desc(sql`rowid`)).all()
  }

  /** Returns the executions of a server that have ended, the last ended first. */
  listEnded(serverId: string): ExecutionRow[] {
    const ended = and(eq(executions.serverId, serverId), ne(executions.status, 'running'))
    const found = this.#queries.select().from(executions).where(ended)
    return found.orderBy(desc(executions.endedAt), desc(sql`rowid`)).all()
  }

  /** Returns an execution of any account, or undefined. */
  find(id: string): ExecutionRow | undefined {
    return this.#queries.select().from(executions).where(eq(executions.id, id)).get()
  }

  add(row: ExecutionRow): void {
    this.#queries.insert(executions).values(row).run()
  }

  /** Stores how an execution has ended, if it is there. */
  update({ id, status, exitCode, timedOut, endedAt, stdoutBytes, stderrBytes }: ExecutionRow): void {
    const changes = { status, exitCode, timedOut, endedAt, stdoutBytes, stderrBytes }
    this.#queries.update(executions).set(changes).where(eq(executions.id, id)).run()
  }

  remove(id: string): void {
    this.#queries.delete(executions).where(eq(executions.id, id)).run()
  }
}
