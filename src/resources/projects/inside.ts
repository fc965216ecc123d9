import { and, eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { projectDirectory, projects } from './table.ts'

/** Number of segments of the path of a project's directory. */
export const PROJECT_PATH_DEPTH = projectDirectory({ slug: 'any' }).split('/').length

/**
 * Reports whether a path is a project's directory or inside it.
 *
 * @param names the segments of the path, relative to the server's workspace
 */
export function isInProject(queries: Queries, serverId: string, names: readonly string[]): boolean {
  const slug = names[PROJECT_PATH_DEPTH - 1]
  if (slug === undefined || names.slice(0, PROJECT_PATH_DEPTH).join('/') !== projectDirectory({ slug }))
    return false
  const which = and(eq(projects.serverId, serverId), eq(projects.slug, slug))
  return queries.select({ id: projects.id }).from(projects).where(which).get() !== undefined
}
