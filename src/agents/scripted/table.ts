import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { ScenarioText } from './model.ts'

/** Scenarios that were set by the control API, in order. */
export const scenarios = sqliteTable('scenarios', {
  position: integer('position').primaryKey(),
  /** Null for those that were set together. */
  id: text('id'),
  scenario: text('scenario', { mode: 'json' }).$type<ScenarioText>().notNull(),
})
