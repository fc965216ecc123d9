import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { FaultText } from './fault.ts'

/** Faults that hold, in the order in which they are tried. */
export const faults = sqliteTable('faults', {
  position: integer('position').primaryKey(),
  id: text('id').notNull().unique(),
  fault: text('fault', { mode: 'json' }).$type<FaultText>().notNull(),
  /** Requests that it was for. */
  matched: integer('matched').notNull().default(0),
  /** Requests that it applied to. */
  hits: integer('hits').notNull().default(0),
  createdAt: integer('created_at').notNull(),
})

/** A fault with its counts. */
export type FaultRow = typeof faults.$inferSelect
