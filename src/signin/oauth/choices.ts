import { accountLabel } from '../../resources/accounts/label.ts'
import type { Queries } from '../../storage/database.ts'
import { type AccountResources, listAccountResources, type ReachableSources } from '../account-resources.ts'
import type { GrantedScope } from './codes.ts'

/** The servers and projects of an account, to choose from. */
export interface ScopeChoices extends AccountResources {
  accountId: string
  accountLabel: string
}

/** Reads the servers and projects of an account. */
export async function listScopeChoices(
  accountId: string,
  { queries, ...parts }: ReachableSources & { queries: Queries },
): Promise<ScopeChoices> {
  return {
    accountId,
    accountLabel: accountLabel(queries, accountId),
    ...(await listAccountResources(accountId, parts)),
  }
}

/** A person's choice, or a sentence about why it cannot be granted. */
type ChosenScope = { scope: GrantedScope; fault?: never } | { scope?: never; fault: string }

/**
 * Reads a person's choice: the whole account, or servers and projects. Ticking a project ticks its server too, since
 * an empty list of servers would mean all of them.
 */
export function readChosen(form: URLSearchParams, { servers, projects }: ScopeChoices): ChosenScope {
  const serverIds = new Set(form.getAll('server'))
  const projectIds = new Set(form.getAll('project'))
  const ticked = serverIds.size + projectIds.size
  if (form.get('access') === 'all') {
    return ticked === 0
      ? { scope: { allowedServerIds: [], allowedProjectIds: [] } }
      : { fault: 'You ticked servers or projects, and the whole account. Choose one of the two.' }
  }
  if (form.get('access') !== 'chosen') return { fault: 'Choose what the program may reach.' }
  if (ticked === 0) return { fault: 'Tick at least one server or project, or choose the whole account.' }
  const chosenProjects = projects.filter(({ id }) => projectIds.has(id))
  const known = new Set(servers.map(({ id }) => id))
  const areKnown = [...serverIds].every((id) => known.has(id)) && chosenProjects.length === projectIds.size
  if (!areKnown)
    return { fault: 'Something that you ticked is gone. Look at what is there now and choose again.' }
  return {
    scope: {
      allowedServerIds: [...new Set([...serverIds, ...chosenProjects.map((project) => project.server_id)])],
      allowedProjectIds: [...projectIds],
    },
  }
}
