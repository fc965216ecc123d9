import { and, eq } from 'drizzle-orm'
import { accountCaller, type Caller } from '../http/caller.ts'
import { deployments } from '../resources/deployments/table.ts'
import { projects } from '../resources/projects/table.ts'
import type { Queries } from '../storage/database.ts'

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

/**
 * Returns the id of the public project, or of the deployment, whose app answers at a port of this machine; null if there is
 * none. To a person it looks like a program on the machine, which it is not.
 */
export function appAtPort(queries: Queries, port: number): string | null {
  const isPublic = and(eq(projects.port, port), eq(projects.visibility, 'public'))
  const project = queries.select({ id: projects.id }).from(projects).where(isPublic).get()
  if (project !== undefined) return project.id
  const atPort = eq(deployments.port, port)
  return queries.select({ id: deployments.id }).from(deployments).where(atPort).get()?.id ?? null
}
