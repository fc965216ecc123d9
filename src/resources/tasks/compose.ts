import { and, eq } from 'drizzle-orm'
import type { Agent } from '../../agents/agent.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Outbox } from '../events/outbox.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerFollower } from '../servers/follower.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { TaskRecords } from './records.ts'
import type { TaskRunner } from './runner.ts'
import type { TasksService } from './service.ts'
import { tasks, unfinished } from './table.ts'

/** What tasks are made of. */
export interface TaskParts {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  outbox: Outbox
  metering: Metering
  changes: Notifier
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
  #stopped = false

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
      if (this.#stopped) await service.stop()
      return this.#loaded
    })
  }

  /** The tasks. */
  readonly service = async (): Promise<TasksService> => (await this.#load()).service

  /** Says of those that a killed berth has left that they have failed. Call it before anybody can ask for a task. */
  async recover(): Promise<void> {
    const { queries } = this.#parts
    const left = queries.select({ id: tasks.id }).from(tasks).where(unfinished()).limit(1).get()
    if (!left) return
    const { records } = await this.#load()
    const status = 'failed'
    const result = 'berth ended unexpectedly while the task ran.'
    for (const row of records.unfinished()) {
      records.becomes(row, { status, result }, () =>
        records.addEvent(row.id, records.lastSeq(row.id) + 1, { type: 'status', status, result }),
      )
    }
  }

  /** Ends what runs. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loaded?.service.stop()
  }

  started(): void {}

  stopping(serverId: string): void {
    const { servers, metering } = this.#parts
    const runner = this.#loaded?.runner
    // Why it stops costs a look at the account, which most stops need not wait for.
    if (!runner?.isBusy(serverId)) return
    const row = servers.find(serverId)
    const result = row && metering.isCapped(row.accountId) ? CAPPED : STOPPED
    runner.endOf(serverId, row ? { status: 'failed', result } : { status: 'gone', result: DELETED })
  }

  removing({ id, accountId }: ServerRow): void {
    const { queries, outbox } = this.#parts
    const ofServer = and(eq(tasks.serverId, id), unfinished())
    const left = queries.select({ id: tasks.id }).from(tasks).where(ofServer).all()
    for (const row of left) {
      const told = { task_id: row.id, server_id: id, status: 'failed', result: DELETED }
      outbox.emit(accountId, 'task.failed', told)
    }
  }

  async removed(): Promise<void> {}
}

const STOPPED = 'The server stopped while the task ran.'
const CAPPED = 'The budget of the account is used up: its servers were put to sleep.'
const DELETED = 'The server was deleted while the task ran.'
