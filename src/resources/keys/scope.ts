import { badRequest } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { ApiKeyScopeUpdate } from './model.ts'

/** Reports whether an account owns a server or a project. */
type OwnershipCheck = (accountId: string, id: string) => boolean

/** Checks the owners of the ids in a scope. */
export interface ScopeOwners {
  server: OwnershipCheck
  project: OwnershipCheck
}

/** A scope, as stored. */
export interface StoredScope {
  allowedServerIds: string[]
  allowedProjectIds: string[]
}

/** The largest number of unknown ids that an error names. */
const MAX_NAMED = 3

/**
 * Returns the scope to store, with each id once.
 *
 * @throws BerthError 400 that names ids which the account does not own
 */
export function checkScope(
  { accountId }: Caller,
  { allowed_server_ids: servers = [], allowed_project_ids: projects = [] }: ApiKeyScopeUpdate,
  owners: ScopeOwners,
): StoredScope {
  return {
    allowedServerIds: checkIds(servers, 'allowed_server_ids', 'servers', (id) =>
      owners.server(accountId, id),
    ),
    allowedProjectIds: checkIds(projects, 'allowed_project_ids', 'projects', (id) =>
      owners.project(accountId, id),
    ),
  }
}

function checkIds(given: string[], field: string, what: string, owned: (id: string) => boolean): string[] {
  const ids = [...new Set(given)]
  const unknown: string[] = []
  for (const id of ids) {
    if (owned(id)) continue
    if (unknown.length === MAX_NAMED) {
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
