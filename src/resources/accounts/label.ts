import { eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { accounts } from './table.ts'

/** What an account is called; empty where it has no name, or is gone. */
export const labelOf = (queries: Queries, accountId: string): string =>
  queries.select({ label: accounts.label }).from(accounts).where(eq(accounts.id, accountId)).get()?.label ??
  ''
