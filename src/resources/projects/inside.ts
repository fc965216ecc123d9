import { and, eq } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { folderOf, projects } from './table.ts'

/** How many names the folder of a project has. */
export const PROJECT_DEPTH = folderOf({ slug: 'any' }).split('/').length

/**
 * Reports whether a path is a project's directory or inside it.
 *
 * @param names the segments of the path, relative to the server's workspace
 */
export function isInProject(queries: Queries, serverId: string, names: readonly string[]): boolean {
  const slug = names[PROJECT_DEPTH - 1]
  if (slug === undefined || names.slice(0, PROJECT_DEPTH).join('/') !== folderOf({ slug })) return false
  const which = and(eq(projects.serverId, serverId), eq(projects.slug, slug))
  return queries.select({ id: projects.id }).from(projects).where(which).get() !== undefined
}
