import { eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { accounts } from './table.ts'

/** Returns an account's label; empty if it has none or does not exist. */
export const accountLabel = (queries: Queries, accountId: string): string =>
  queries.select({ label: accounts.label }).from(accounts).where(eq(accounts.id, accountId)).get()?.label ??
  ''
