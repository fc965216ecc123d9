import { blob, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Environment variables of servers, with an empty projectId, and of projects. */
export const secrets = sqliteTable('secrets', {
  serverId: text('server_id').notNull(),
  projectId: text('project_id').notNull(),
  name: text('name').notNull(),
  /** Sealed. */
  value: blob('value', { mode: 'buffer' }).notNull(),
})
