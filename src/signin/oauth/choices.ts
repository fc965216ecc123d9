import { accountLabel } from '../../resources/accounts/label.ts'
import type { Queries } from '../../storage/database.ts'
import { type Reachable, type ReachableSources, reachableOf } from '../reachable.ts'
import type { GrantedReach } from './codes.ts'

/** The servers and projects of an account, to choose from. */
export interface Choices extends Reachable {
  accountId: string
  accountLabel: string
}

/** Reads what an account has to choose from. */
export async function choicesOf(
  accountId: string,
  { queries, ...parts }: ReachableSources & { queries: Queries },
): Promise<Choices> {
  return {
    accountId,
    accountLabel: accountLabel(queries, accountId),
    ...(await reachableOf(accountId, parts)),
  }
}

/** A person's choice, or a sentence about why it cannot be granted. */
export type Chosen = { reach: GrantedReach; fault?: never } | { reach?: never; fault: string }

/**
 * Reads a person's choice: the whole account, or servers and projects. Ticking a project ticks its server too, since
 * an empty list of servers would mean all of them.
 */
export function readChosen(form: URLSearchParams, { servers, projects }: Choices): Chosen {
  const serverIds = new Set(form.getAll('server'))
  const projectIds = new Set(form.getAll('project'))
  const ticked = serverIds.size + projectIds.size
  if (form.get('access') === 'all') {
    return ticked === 0
      ? { reach: { allowedServerIds: [], allowedProjectIds: [] } }
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
    reach: {
      allowedServerIds: [...new Set([...serverIds, ...chosenProjects.map((project) => project.server_id)])],
      allowedProjectIds: [...projectIds],
    },
  }
}
