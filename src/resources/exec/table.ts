import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { EXECUTION_STATUSES, Execution } from './model.ts'

/** Commands that run without a request that waits for them. Their byte counts are written at their end. */
export const executions = sqliteTable('executions', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  serverId: text('server_id').notNull(),
  command: text('command').notNull(),
  pid: integer('pid'),
  status: text('status').$type<(typeof EXECUTION_STATUSES)[number]>().notNull(),
  exitCode: integer('exit_code'),
  timedOut: integer('timed_out', { mode: 'boolean' }).notNull(),
  stdoutBytes: integer('stdout_bytes').notNull(),
  stderrBytes: integer('stderr_bytes').notNull(),
  startedAt: integer('started_at').notNull(),
  endedAt: integer('ended_at'),
})

/** An execution as it is stored. */
export type ExecutionRow = typeof executions.$inferSelect

/** Converts a row to the public form. */
export const toExecution = (row: ExecutionRow): Execution => ({
  id: row.id,
  serverId: row.serverId,
  command: row.command,
  pid: row.pid,
  status: row.status,
  exitCode: row.exitCode,
  timedOut: row.timedOut,
  stdoutBytes: row.stdoutBytes,
  stderrBytes: row.stderrBytes,
  startedAt: toIso(row.startedAt),
  endedAt: row.endedAt === null ? null : toIso(row.endedAt),
})
