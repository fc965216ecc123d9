import { useMemo, useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import { RequestFacts } from '../requests/facts.ts'
import type { TaskSteps } from './task-steps.ts'
import { type Entry, growTree } from './tree.ts'

/** The same at each drawing. */
const NONE: readonly never[] = []

/**
 * Returns everything that is known to have happened, and keeps it up to date.
 *
 * @param taskSteps the tasks whose steps are shown below them
 */
export function useTree(taskSteps?: TaskSteps): readonly Entry[] {
  const { store, steps, context } = useDashboard()
  const [facts] = useState(() => new RequestFacts())
  const { servers, projects, tasks, builds } = store
  const traffic = context.is_admin ? store : null
  const lists = [
    traffic?.requests.open().list.value ?? NONE,
    traffic?.events.open().list.value ?? NONE,
    traffic?.deliveries.open().list.value ?? NONE,
    servers.open().list.value,
    projects.open().list.value,
    tasks.open().list.value,
    builds.open().list.value,
    steps.list.value,
  ] as const
  const transcripts = new Map([...(taskSteps?.ids ?? [])].map((id) => [id, taskSteps?.of(id)?.value ?? NONE]))
  return useMemo(() => {
    const [requests, events, deliveries, ...rest] = lists
    const [allServers, allProjects, allTasks, allBuilds, allSteps] = rest
    return growTree({
      requests,
      events,
      deliveries,
      servers: allServers,
      projects: allProjects,
      tasks: allTasks,
      builds: allBuilds,
      steps: allSteps,
      transcripts,
      facts,
      accountId: context.account.id,
    })
  }, [...lists, ...transcripts.values(), transcripts.size])
}
