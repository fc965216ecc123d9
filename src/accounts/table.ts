import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Accounts: whom resources belong to. */
export const accounts = sqliteTable('accounts', {
  id: text('id').primaryKey(),
  label: text('label').notNull(),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
})
