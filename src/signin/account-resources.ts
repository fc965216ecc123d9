import { accountCaller, type Caller } from '../http/caller.ts'

/** Sources of the servers and projects of accounts. */
export interface ReachableSources {
  servers: { list(caller: Caller): ServerName[] }
  projects: () => Promise<{ listAll(caller: Caller): ProjectName[] }>
}

/** A server, as a person knows it. */
interface ServerName {
  id: string
  /** Its short label. */
  task: string
}

/** A project, as a person knows it. */
interface ProjectName {
  id: string
  name: string
  slug: string
  server_id: string
}

/** The resources that a credential of an account can be limited to. */
export interface AccountResources {
  servers: ServerName[]
  projects: ProjectName[]
}

/** Reads the resources that a credential of an account can be limited to. */
export async function listAccountResources(
  accountId: string,
  { servers, projects }: ReachableSources,
): Promise<AccountResources> {
  const caller = accountCaller(accountId)
  return { servers: servers.list(caller), projects: (await projects()).listAll(caller) }
}
