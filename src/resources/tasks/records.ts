import { and, asc, desc, eq, gt, sql } from 'drizzle-orm'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { once } from '../../runtime/once.ts'
import type { Recorder } from '../../runtime/recorder.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import type { TaskEvent } from './model.ts'
import { isUnfinished, type TaskRow, taskEvents, tasks } from './table.ts'
import type { TranscriptEvent } from './transcript-event.ts'

/** Dependencies of the records. */
export interface RecordsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  outbox: Outbox
  metering: Metering
  /** Notified of new tasks and of every change of a status. */
  changes: Changes
  /** Takes each event of a transcript; null if nothing is recorded. */
  recorder: Recorder | null
}

/** A new status, with the result or the question that belongs to it. */
export type StatusChange =
  | { readonly status: 'running' | 'cancelled'; readonly result?: never; readonly question?: never }
  | { readonly status: 'awaiting_input'; readonly question: string; readonly result?: never }
  | { readonly status: 'completed' | 'failed'; readonly result: string; readonly question?: never }

/** Stores tasks. Writes the events and charges of a change in its transaction. */
export class TaskRecords {
  readonly #dependencies: RecordsDependencies
  readonly #queries: Queries
  readonly #add
  readonly #find
  readonly #insertEvent
  readonly #listByServer
  readonly #listByAccount

  constructor(dependencies: RecordsDependencies) {
    const { queries } = dependencies
    this.#dependencies = dependencies
    this.#queries = queries
    this.#listByServer = once(() =>
      queries
        .select()
        .from(tasks)
        .where(eq(tasks.serverId, sql.placeholder('serverId')))
        .orderBy(desc(sql`rowid`))
        .prepare(),
    )
    this.#listByAccount = once(() =>
      queries
        .select()
        .from(tasks)
        .where(eq(tasks.accountId, sql.placeholder('accountId')))
        .orderBy(desc(sql`rowid`))
        .prepare(),
    )
    this.#find = once(() =>
      queries
        .select()
        .from(tasks)
        .where(eq(tasks.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#add = once(() =>
      queries
        .insert(tasks)
        .values({
          id: sql.placeholder('id'),
          accountId: sql.placeholder('accountId'),
          serverId: sql.placeholder('serverId'),
          goal: sql.placeholder('goal'),
          status: 'running',
          createdAt: sql.placeholder('createdAt'),
        })
        .returning()
        .prepare(),
    )
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

  /** Returns the tasks of a server, newest first. */
  listByServer(serverId: string): TaskRow[] {
    return this.#listByServer().all({ serverId })
  }

  /** Returns the tasks of all servers of an account, newest first. */
  listByAccount(accountId: string): TaskRow[] {
    return this.#listByAccount().all({ accountId })
  }

  /** Returns a task of any account, or undefined. */
  find(id: string): TaskRow | undefined {
    return this.#find().get({ id })
  }

  /** Returns the unfinished tasks of a server, or of all servers, oldest first. */
  listUnfinished(serverId?: string): TaskRow[] {
    const which = serverId === undefined ? undefined : eq(tasks.serverId, serverId)
    const found = this.#queries.select().from(tasks).where(and(which, isUnfinished()))
    return found.orderBy(asc(sql`rowid`)).all()
  }

  /** Stores a new running task with the first event of its transcript, charges it and emits its event. */
  add(accountId: string, serverId: string, goal: string): TaskRow {
    const { clock, ids, outbox, metering } = this.#dependencies
    return this.#queries.transaction(() => {
      const id = ids.next('task', (taken) => this.find(taken) !== undefined)
      const row = this.#add().get({ id, accountId, serverId, goal, createdAt: clock.now() })
      outbox.emit(accountId, 'task.created', { task_id: id, server_id: serverId, status: 'running' })
      metering.charge(accountId, serverId, 'task')
      this.addEvent(id, 1, { type: 'status', status: 'running' })
      this.notifyChange(row)
      return row
    })
  }

  /**
   * Changes the status of an unfinished task. Emits the event of its end and calls `addEvents` in the same transaction.
   *
   * @returns false, without any change, if the task has ended or was deleted
   */
  setStatus(row: TaskRow, change: StatusChange, addEvents: () => void): boolean {
    const { id, accountId, serverId } = row
    const { status, result = null, question = null } = change
    return this.#queries.transaction(() => {
      const changed = this.#queries
        .update(tasks)
        .set({ status, result, question })
        .where(and(eq(tasks.id, id), isUnfinished()))
        .returning({ id: tasks.id })
        .get()
      if (!changed) return false
      if (status === 'completed' || status === 'failed') {
        const payload = { task_id: id, server_id: serverId, status, result: result ?? '' }
        this.#dependencies.outbox.emit(accountId, `task.${status}`, payload)
      }
      addEvents()
      this.notifyChange(row)
      return true
    })
  }

  /** Notifies of a change of a task, which may not be stored. */
  notifyChange({ id, accountId, serverId }: TaskRow): void {
    this.#dependencies.changes.notify('task', id, accountId, serverId)
  }

  /** Adds an event to a transcript and returns its public form. */
  addEvent(taskId: string, seq: number, event: TranscriptEvent): TaskEvent {
    const { clock, recorder } = this.#dependencies
    const at = clock.now()
    this.#insertEvent().run({ taskId, seq, at, event })
    const shown = { seq, at: toIso(at), ...event }
    recorder?.transcript(taskId, shown)
    return shown
  }

  /** Returns the public form of an event that is not stored. */
  toEvent(seq: number, event: TranscriptEvent): TaskEvent {
    return { seq, at: toIso(this.#dependencies.clock.now()), ...event }
  }

  /** Returns the events of a transcript after one, oldest first. */
  listEvents(taskId: string, after: number, limit?: number): TaskEvent[] {
    const found = this.#queries
      .select()
      .from(taskEvents)
      .where(and(eq(taskEvents.taskId, taskId), gt(taskEvents.seq, after)))
      .orderBy(asc(taskEvents.seq))
    const rows = limit === undefined ? found.all() : found.limit(limit).all()
    return rows.map(({ seq, at, event }) => ({ seq, at: toIso(at), ...event }))
  }

  /** Returns the `seq` of a transcript's last event, or 0. */
  lastSeq(taskId: string): number {
    const last = this.#queries
      .select({ seq: taskEvents.seq })
      .from(taskEvents)
      .where(eq(taskEvents.taskId, taskId))
    return last.orderBy(desc(taskEvents.seq)).limit(1).get()?.seq ?? 0
  }
}
