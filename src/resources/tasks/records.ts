import { and, asc, desc, eq, gt, inArray, sql } from 'drizzle-orm'
import type { Metering } from '../../accounts/metering.ts'
import type { Outbox } from '../../events/outbox.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { TaskEvent } from './model.ts'
import { type TaskRow, taskEvents, tasks } from './table.ts'
import type { TranscriptEvent } from './transcript.ts'

/** What the records need. */
interface RecordsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  outbox: Outbox
  metering: Metering
}

/** States in which an agent is still to do something. */
const UNFINISHED = ['running', 'awaiting_input'] as const

/** The records of tasks; events and charges are written in the transaction of the change they come from. */
export class TaskRecords {
  readonly #dependencies: RecordsDependencies
  readonly #queries: Queries
  readonly #insertEvent

  constructor(dependencies: RecordsDependencies) {
    const { queries } = dependencies
    this.#dependencies = dependencies
    this.#queries = queries
    this.#insertEvent = once(() =>
      queries
        .insert(taskEvents)
        .values({
          taskId: sql.placeholder('taskId'),
          seq: sql.placeholder('seq'),
          at: sql.placeholder('at'),
          event: sql.placeholder('event'),
        })
        .prepare(),
    )
  }

  /** Those of a server, newest first. */
  ofServer(serverId: string): TaskRow[] {
    const found = this.#queries.select().from(tasks).where(eq(tasks.serverId, serverId))
    return found.orderBy(desc(sql`rowid`)).all()
  }

  /** One, whosever it is. */
  find(id: string): TaskRow | undefined {
    return this.#queries.select().from(tasks).where(eq(tasks.id, id)).get()
  }

  /** Those that no agent has ended, of one server or of all; oldest first. */
  unfinished(serverId?: string): TaskRow[] {
    const which = serverId === undefined ? undefined : eq(tasks.serverId, serverId)
    const found = this.#queries.select().from(tasks)
    return found
      .where(and(which, inArray(tasks.status, [...UNFINISHED])))
      .orderBy(asc(sql`rowid`))
      .all()
  }

  /** Writes a new task that runs, charges it and tells of it. */
  add(accountId: string, serverId: string, goal: string): TaskRow {
    const { clock, ids, outbox, metering } = this.#dependencies
    return this.#queries.transaction(() => {
      const id = ids.next('task', (taken) => this.find(taken) !== undefined)
      const values = { id, accountId, serverId, goal, status: 'running' as const, createdAt: clock.now() }
      const row = this.#queries.insert(tasks).values(values).returning().get()
      outbox.emit(accountId, 'task.created', { task_id: id, server_id: serverId, status: 'running' })
      metering.charge(accountId, serverId, 'task')
      return row
    })
  }

  /** The agent waits for an answer. */
  awaits(id: string, question: string): void {
    this.#update(id, { status: 'awaiting_input', question })
  }

  /** The agent goes on. */
  resumes(id: string): void {
    this.#update(id, { status: 'running', question: null })
  }

  /** The work is over. */
  ends({ id, accountId, serverId }: TaskRow, status: 'completed' | 'failed', result: string): void {
    this.#queries.transaction(() => {
      this.#update(id, { status, result, question: null })
      this.#dependencies.outbox.emit(accountId, `task.${status}`, {
        task_id: id,
        server_id: serverId,
        status,
        result,
      })
    })
  }

  /** The caller has called it off. */
  cancels(id: string): void {
    this.#update(id, { status: 'cancelled', question: null })
  }

  /** Adds an event to a transcript; returns it as callers see it. */
  addEvent(taskId: string, seq: number, event: TranscriptEvent): TaskEvent {
    const at = this.#dependencies.clock.now()
    this.#insertEvent().run({ taskId, seq, at, event })
    return { seq, at: toIso(at), ...event }
  }

  /** The events of a transcript that come after one, oldest first. */
  events(taskId: string, after: number, limit?: number): TaskEvent[] {
    const found = this.#queries
      .select()
      .from(taskEvents)
      .where(and(eq(taskEvents.taskId, taskId), gt(taskEvents.seq, after)))
      .orderBy(asc(taskEvents.seq))
    const rows = limit === undefined ? found.all() : found.limit(limit).all()
    return rows.map(({ seq, at, event }) => ({ seq, at: toIso(at), ...event }))
  }

  /** The number of a transcript's last event; 0 for none. */
  lastSeq(taskId: string): number {
    const last = this.#queries
      .select({ seq: taskEvents.seq })
      .from(taskEvents)
      .where(eq(taskEvents.taskId, taskId))
    return last.orderBy(desc(taskEvents.seq)).limit(1).get()?.seq ?? 0
  }

  #update(id: string, changes: Partial<TaskRow>): void {
    this.#queries.update(tasks).set(changes).where(eq(tasks.id, id)).run()
  }
}
