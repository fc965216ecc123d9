import { eq, inArray } from 'drizzle-orm'
import type { Metering } from '../../accounts/metering.ts'
import type { Agent } from '../../agents/agent.ts'
import type { Outbox } from '../../events/outbox.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerFollower } from '../servers/follower.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { TaskRecords } from './records.ts'
import type { TaskRunner } from './runner.ts'
import type { TasksService } from './service.ts'
import { tasks } from './table.ts'

/** What tasks are made of. */
export interface TaskParts {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  outbox: Outbox
  metering: Metering
  servers: ServersService
  secrets: SecretsService
  /** Who does them. */
  agent: () => Promise<Agent>
}

/** Tasks, loaded when the first is asked for. */
interface Loaded {
  records: TaskRecords
  runner: TaskRunner
  service: TasksService
}

/** The way to tasks: a start waits for none of it, and a server without any stops as if there were no such thing. */
export class TasksEntry implements ServerFollower {
  readonly #parts: TaskParts
  readonly #load: () => Promise<Loaded>
  #loaded: Loaded | null = null

  constructor(parts: TaskParts) {
    this.#parts = parts
    this.#load = once(async () => {
      const [{ TaskRecords }, { TaskRunner }, { TasksService }] = await Promise.all([
        import('./records.ts'),
        import('./runner.ts'),
        import('./service.ts'),
      ])
      const records = new TaskRecords(parts)
      const runner = new TaskRunner({ ...parts, records })
      const service = new TasksService({ records, runner, servers: parts.servers })
      this.#loaded = { records, runner, service }
      return this.#loaded
    })
  }

  /** The tasks. */
  readonly service = async (): Promise<TasksService> => (await this.#load()).service

  /** Says of those that a killed berth has left that they have failed. Call it before servers come up. */
  async recover(): Promise<void> {
    const { queries } = this.#parts
    const left = queries.select({ id: tasks.id }).from(tasks)
    if (
      !left
        .where(inArray(tasks.status, ['running', 'awaiting_input']))
        .limit(1)
        .get()
    )
      return
    const { records } = await this.#load()
    const result = 'berth ended unexpectedly while the task ran.'
    for (const row of records.unfinished()) {
      if (this.#loaded?.runner.find(row.id)) continue
      queries.transaction(() => {
        records.ends(row, 'failed', result)
        records.addEvent(row.id, records.lastSeq(row.id) + 1, { type: 'status', status: 'failed', result })
      })
    }
  }

  /** Ends what runs. */
  async stop(): Promise<void> {
    await this.#loaded?.service.stop()
  }

  started(): void {}

  stopping(serverId: string): void {
    const { servers, metering } = this.#parts
    const row = servers.find(serverId)
    const capped = row !== undefined && metering.isCapped(row.accountId)
    const result = capped
      ? 'The budget of the account is used up: its servers were put to sleep.'
      : 'The server was stopped while the task ran.'
    this.#loaded?.runner.endOf(serverId, row ? { status: 'failed', result } : { status: 'gone' })
  }

  removing({ id }: ServerRow): void {
    const { queries, outbox } = this.#parts
    for (const row of queries.select().from(tasks).where(eq(tasks.serverId, id)).all()) {
      if (row.status !== 'running' && row.status !== 'awaiting_input') continue
      const result = 'The server was deleted while the task ran.'
      const told = { task_id: row.id, server_id: id, status: 'failed', result }
      outbox.emit(row.accountId, 'task.failed', told)
    }
  }

  async removed(): Promise<void> {}
}
