import { eq } from 'drizzle-orm'
import { badRequest } from '../../errors.ts'
import { accounts } from '../../resources/accounts/table.ts'
import type { Queries } from '../../storage/database.ts'

/**
 * Refuses the id of an account that is not there.
 *
 * @param id undefined where none is named, which is good
 * @param where what stands before the colon of the message
 * @throws BerthError 400
 */
export function checkAccount(queries: Queries, id: string | undefined, where: string): void {
  if (id === undefined) return
  const known = queries.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, id)).get()
  if (!known) throw badRequest(`${where}: there is no account ${JSON.stringify(id)}.`)
}
