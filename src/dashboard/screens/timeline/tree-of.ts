import { useMemo, useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import { RequestFacts } from '../requests/facts.ts'
import { type Entry, growTree } from './tree.ts'

/** The same at each drawing. */
const NONE: readonly never[] = []

/** Returns everything that is known to have happened, and keeps it up to date. */
export function useTree(): readonly Entry[] {
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
      facts,
      accountId: context.account.id,
    })
  }, lists)
}
