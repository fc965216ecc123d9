import { and, eq } from 'drizzle-orm'
import { deployments } from '../resources/deployments/table.ts'
import { projects } from '../resources/projects/table.ts'
import type { Queries } from '../storage/database.ts'

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
