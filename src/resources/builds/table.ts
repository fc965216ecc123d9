import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { toIso } from '../../runtime/clock.ts'
import type { Build, BuildStatus, BuildStep, StepStatus } from './model.ts'
import { STEP_KEYS, STEP_LABELS, type StepKey } from './steps.ts'

/** How far each phase is, in their order. */
export type StepStates = readonly { readonly key: StepKey; readonly status: StepStatus }[]

/** Builds. */
export const builds = sqliteTable('builds', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  serverId: text('server_id').notNull(),
  goal: text('goal').notNull(),
  status: text('status').$type<BuildStatus>().notNull(),
  steps: text('steps', { mode: 'json' }).$type<StepStates>().notNull(),
  artifacts: text('artifacts', { mode: 'json' }).$type<readonly string[]>().notNull(),
  /** The template whose files it copied; null where it went on with an app that was there. */
  template: text('template'),
  /** The paths of these files, written before the first is copied. */
  scaffold: text('scaffold', { mode: 'json' }).$type<readonly string[]>().notNull().default([]),
  url: text('url'),
  createdAt: integer('created_at').notNull(),
})

/** States of a build that has not ended. */
export const UNFINISHED_STATUSES = ['queued', 'running'] as const

/** A build as it is stored. */
export type BuildRow = typeof builds.$inferSelect

/** The phases of a build that has not begun. */
export const pendingSteps = (): StepStates => STEP_KEYS.map((key) => ({ key, status: 'pending' }))

/** Phases as callers see them. */
export const toSteps = (steps: StepStates): BuildStep[] =>
  steps.map(({ key, status }) => ({ key, label: STEP_LABELS[key], status }))

/** The only way from a row to the public shape. */
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
