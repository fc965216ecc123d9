import { badRequest } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { ApiKeyScopeUpdate } from './model.ts'

/** Whether an account has a server, or a project, of this id. */
export type Owns = (accountId: string, id: string) => boolean

/** Whose the ids in a scope are. */
export interface ScopeOwners {
  server: Owns
  project: Owns
}

/** A scope as it is stored. */
export interface StoredScope {
  allowedServerIds: string[]
  allowedProjectIds: string[]
}

/** How many unknown ids a refusal names. */
const NAMED = 3

/**
 * A scope to store: each id once, all of them the account's.
 *
 * @throws BerthError 400 that names ids which the account does not have
 */
export function checkScope(
  { accountId }: Caller,
  { allowed_server_ids: servers = [], allowed_project_ids: projects = [] }: ApiKeyScopeUpdate,
  owners: ScopeOwners,
): StoredScope {
  return {
    allowedServerIds: known(servers, 'allowed_server_ids', 'servers', (id) => owners.server(accountId, id)),
    allowedProjectIds: known(projects, 'allowed_project_ids', 'projects', (id) =>
      owners.project(accountId, id),
    ),
  }
}

function known(given: string[], field: string, what: string, owned: (id: string) => boolean): string[] {
  const ids = [...new Set(given)]
  const unknown: string[] = []
  for (const id of ids) {
    if (owned(id)) continue
    if (unknown.length === NAMED) {
      unknown.push('…')
      break
    }
    unknown.push(JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id))
  }
  if (unknown.length === 0) return ids
  throw badRequest(
    `"${field}" in the body: expected ids of the account's ${what}, which ${unknown.join(', ')} ${unknown.length === 1 ? 'is' : 'are'} not.`,
  )
}
