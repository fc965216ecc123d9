import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { FailedChange } from '../../hosting/app.ts'
import { appPlan } from '../projects/table.ts'

/** The deployments of servers, one each. */
export const deployments = sqliteTable('deployments', {
  id: text('id').primaryKey(),
  serverId: text('server_id').notNull(),
  port: integer('port').notNull(),
  plan: appPlan('plan').notNull(),
  createdAt: integer('created_at').notNull(),
  /** The last publication that did not come up; null once a later one does. */
  failedChange: text('failed_change', { mode: 'json' }).$type<FailedChange>(),
  /** What keeps a visitor from seeing its pages as they are meant, of the last version that came up. */
  warnings: text('warnings', { mode: 'json' }).$type<readonly string[]>().notNull().default([]),
})

/** A deployment as it is stored. */
export type DeploymentRow = typeof deployments.$inferSelect
