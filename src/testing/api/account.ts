import { eq } from 'drizzle-orm'
import { badRequest } from '../../errors.ts'
import { accounts } from '../../resources/accounts/table.ts'
import type { Queries } from '../../storage/database.ts'

/**
 * Checks that an account exists.
 *
 * @param id undefined passes
 * @param where names the field, before the colon of the message
 * @throws BerthError 400
 */
export function checkAccount(queries: Queries, id: string | undefined, where: string): void {
  if (id === undefined) return
  const known = queries.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, id)).get()
  if (!known) throw badRequest(`${where}: there is no account ${JSON.stringify(id)}.`)
}
