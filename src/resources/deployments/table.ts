import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { AppPlan } from '../../hosting/app-runtime/plan.ts'

/** The deployments of servers, one each. */
export const deployments = sqliteTable('deployments', {
  id: text('id').primaryKey(),
  serverId: text('server_id').notNull(),
  port: integer('port').notNull(),
  plan: text('plan', { mode: 'json' }).$type<AppPlan>().notNull(),
  createdAt: integer('created_at').notNull(),
})

/** A deployment as it is stored. */
export type DeploymentRow = typeof deployments.$inferSelect
