import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { Build, BuildStatus, BuildStep, StepStatus } from './model.ts'
import { STEP_KEYS, STEP_LABELS, type StepKey } from './steps.ts'

/** The status of each phase, in order, and when it began and ended, in milliseconds. */
type StepStates = readonly {
  readonly key: StepKey
  readonly status: StepStatus
  /** Whether it had nothing to do. */
  readonly skipped?: true
  readonly beganAt?: number
  readonly endedAt?: number
}[]

/** Builds. */
export const builds = sqliteTable('builds', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  serverId: text('server_id').notNull(),
  goal: text('goal').notNull(),
  status: text('status').$type<BuildStatus>().notNull(),
  steps: text('steps', { mode: 'json' }).$type<StepStates>().notNull(),
  artifacts: text('artifacts', { mode: 'json' }).$type<readonly string[]>().notNull(),
  /** The template that it copied; null if it continued with an existing app. */
  template: text('template'),
  /** The paths of the template's files, stored before the first is copied. */
  scaffold: text('scaffold', { mode: 'json' }).$type<readonly string[]>().notNull().default([]),
  url: text('url'),
  createdAt: integer('created_at').notNull(),
})

/** Statuses of a build that has not ended. */
export const UNFINISHED_STATUSES = ['queued', 'running'] as const

/** A build as it is stored. */
export type BuildRow = typeof builds.$inferSelect

/** Returns the phases of a build that has not started. */
export const pendingSteps = (): StepStates => STEP_KEYS.map((key) => ({ key, status: 'pending' }))

/** Converts phases to the public form. */
export const toSteps = (steps: StepStates): BuildStep[] =>
  steps.map(({ key, status, skipped, beganAt, endedAt }) => ({
    key,
    label: STEP_LABELS[key],
    status,
    ...(skipped && { skipped }),
    ...(beganAt !== undefined && { beganAt: toIso(beganAt) }),
    ...(endedAt !== undefined && { endedAt: toIso(endedAt) }),
  }))

/** Converts a row to the public form. */
export const toBuild = (row: BuildRow): Build => ({
  id: row.id,
  serverId: row.serverId,
  goal: row.goal,
  status: row.status,
  steps: toSteps(row.steps),
  artifacts: [...row.artifacts],
  url: row.url,
  createdAt: toIso(row.createdAt),
})
