import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { removeTree } from '../../storage/remove-tree.ts'
import type { Changes } from '../changes/types.ts'
import type { ServersService } from '../servers/service.ts'
import type { ExecutionRecords } from './execution-records.ts'
import { KeptOutput } from './kept-output.ts'
import type { ExecutionRow } from './table.ts'

/** Most executions of a server that have ended, and the milliseconds for which they are kept. */
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
