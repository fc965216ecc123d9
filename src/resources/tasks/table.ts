import { sql } from 'drizzle-orm'
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { Task, TaskStatus } from './model.ts'
import type { TranscriptEvent } from './transcript-event.ts'

/** Tasks. */
export const tasks = sqliteTable('tasks', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  serverId: text('server_id').notNull(),
  goal: text('goal').notNull(),
  status: text('status').$type<TaskStatus>().notNull(),
  result: text('result'),
  question: text('question'),
  createdAt: integer('created_at').notNull(),
})

/** The events of tasks' transcripts. */
export const taskEvents = sqliteTable(
  'task_events',
  {
    taskId: text('task_id').notNull(),
    seq: integer('seq').notNull(),
    at: integer('at').notNull(),
    event: text('event', { mode: 'json' }).$type<TranscriptEvent>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.taskId, table.seq] })],
)

/** Returns the condition for tasks that have not ended. Literal text, so that SQLite uses the partial index. */
export const isUnfinished = () => sql`${tasks.status} IN ('running', 'awaiting_input')`

/** A task as it is stored. */
export type TaskRow = typeof tasks.$inferSelect

/** Converts a row to the public form. */
export const toTask = (row: TaskRow): Task => ({
  id: row.id,
  serverId: row.serverId,
  goal: row.goal,
  status: row.status,
  createdAt: toIso(row.createdAt),
  ...(row.result === null ? {} : { result: row.result }),
  ...(row.question === null ? {} : { question: row.question }),
})
