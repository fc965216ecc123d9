import { accountCaller, type Caller } from '../http/caller.ts'

/** Sources of the servers and projects of accounts. */
export interface ReachableSources {
  servers: { list(caller: Caller): ReachableServer[] }
  projects: () => Promise<{ listAll(caller: Caller): ReachableProject[] }>
}

/** A server, as a person knows it. */
export interface ReachableServer {
  id: string
  /** Its short label. */
  task: string
}

/** A project, as a person knows it. */
export interface ReachableProject {
  id: string
  name: string
  slug: string
  server_id: string
}

/** What a credential of an account can be limited to. */
export interface Reachable {
  servers: ReachableServer[]
  projects: ReachableProject[]
}

/** Reads what a credential of an account can be limited to. */
export async function reachableOf(
  accountId: string,
  { servers, projects }: ReachableSources,
): Promise<Reachable> {
  const caller = accountCaller(accountId)
  return { servers: servers.list(caller), projects: (await projects()).listAll(caller) }
}
