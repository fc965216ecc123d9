import { labelOf } from '../../resources/accounts/label.ts'
import type { Queries } from '../../storage/database.ts'
import { type Reachable, type ReachableParts, reachableOf } from '../reachable.ts'
import type { Reach } from './codes.ts'

/** What an account has to choose from. */
export interface Choices extends Reachable {
  accountId: string
  accountLabel: string
}

/** Reads what an account has to choose from. */
export async function choicesOf(
  accountId: string,
  { queries, ...parts }: ReachableParts & { queries: Queries },
): Promise<Choices> {
  return { accountId, accountLabel: labelOf(queries, accountId), ...(await reachableOf(accountId, parts)) }
}

/** What a person chose, or what keeps it from being granted, as a sentence. */
export type Chosen = { reach: Reach; fault?: never } | { reach?: never; fault: string }

/**
 * Reads what a person chose: the whole account, or servers and projects. Somebody who ticks a project means it alone: its
 * server counts as ticked, since an empty list would reach all of them.
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
