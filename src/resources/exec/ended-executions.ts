import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { and, desc, eq, ne, sql } from 'drizzle-orm'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import type { Queries } from '../../storage/database.ts'
import { removeTree } from '../../storage/files.ts'
import type { Changes } from '../changes/types.ts'
import type { ServersService } from '../servers/service.ts'
import { KeptOutput } from './kept-output.ts'
import { type ExecutionRow, executions } from './table.ts'

/** Most executions of a server that have ended, and the milliseconds for which they are kept. @bound client */
const MAX_ENDED = 100
const ENDED_MS = 600_000

/** Dependencies of the ended executions. */
interface EndedDependencies {
  records: ExecutionRecords
  servers: ServersService
  clock: Clock
  changes: Changes
  /** The directory of the output of all executions. */
  directory: string
}

/** An execution, and its output for reading. Dispose of it after use. */
export interface ReadExecution extends Disposable {
  readonly row: ExecutionRow
  readonly output: KeptOutput
}

/** Keeps the records and the output of executions that have ended, for a while. */
export class EndedExecutions {
  readonly #dependencies: EndedDependencies
  /** What removes an execution, by its id. */
  readonly #timers = new Map<string, Timer>()

  constructor(dependencies: EndedDependencies) {
    this.#dependencies = dependencies
  }

  /** Records that executions ended with an earlier berth, and removes output without a record and records without output. */
  recover(): void {
    const { clock, directory, records } = this.#dependencies
    const rows = records.listAll()
    const known = new Set(rows.map(({ id }) => id))
    for (const serverId of ifPresent(() => readdirSync(directory)) ?? []) {
      const below = ifPresent(() => readdirSync(join(directory, serverId))) ?? []
      for (const id of below) if (!known.has(id)) removeTree(join(directory, serverId, id))
      if (!below.some((id) => known.has(id))) removeTree(join(directory, serverId))
    }
    // A reset leaves nothing.
    if (rows.length === 0) removeTree(directory)
    for (const row of rows) {
      // A snapshot has no output.
      if (!existsSync(this.pathOf(row))) {
        records.remove(row.id)
        continue
      }
      if (row.status === 'running') {
        using output = KeptOutput.open(this.pathOf(row))
        const { stdout: stdoutBytes, stderr: stderrBytes } = output.counts
        records.update({ ...row, status: 'ended', endedAt: clock.now(), stdoutBytes, stderrBytes })
      }
      this.add(records.find(row.id) ?? row)
    }
  }

  /** Forgets an execution that has ended, later, and now those that are too many. */
  add(row: ExecutionRow): void {
    const { clock, records } = this.#dependencies
    const { id, serverId } = row
    const left = (row.endedAt ?? 0) + ENDED_MS - clock.now()
    this.forget(id)
    const forget = (): void => this.remove(row)
    this.#timers.set(id, clock.after(left, forget, { name: 'execution.forget', id }))
    const ended = records.listEnded(serverId)
    for (const old of ended.slice(MAX_ENDED)) this.remove(old)
  }

  /** Removes a record and its output. */
  remove(row: ExecutionRow): void {
    const { servers, changes, records } = this.#dependencies
    this.forget(row.id)
    records.remove(row.id)
    removeTree(this.pathOf(row))
    changes.notify('execution', row.id, row.accountId, row.serverId)
    const server = servers.records.find(row.serverId)
    if (server) servers.meter.changed(server)
  }

  /** Leaves an execution alone whose record is removed otherwise. */
  forget(id: string): void {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
  }

  /** Opens the output of an execution. */
  open(row: ExecutionRow): ReadExecution {
    const output = KeptOutput.open(this.pathOf(row))
    return { row, output, [Symbol.dispose]: () => output.close() }
  }

  /** Returns the directory of the output of an execution. */
  pathOf({ serverId, id }: Pick<ExecutionRow, 'serverId' | 'id'>): string {
    return join(this.#dependencies.directory, serverId, id)
  }
}

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
