import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { printable } from '../output.ts'
import { path } from '../path.ts'

/**
 * The project that a person names by its id, its slug or its name.
 *
 * @throws CommandError where there is none, or more than one
 */
export async function findProject(client: Client, named: string): Promise<Project> {
  if (named.startsWith('prj_')) return client.request<Project>('GET', path`/projects/${named}`)
  const { projects } = await client.request<{ projects: Project[] }>('GET', '/projects')
  const [only, ...others] = projects.filter(({ slug, name }) => slug === named || name === named)
  if (only === undefined) {
    throw new CommandError(
      `No project has ${JSON.stringify(named)} as its id, slug or name. "berth projects" lists those there are.`,
    )
  }
  if (others.length === 0) return only
  // The slug of one may be the name of another: what is not clear must not be deleted.
  const candidates = [only, ...others].map(
    ({ id, slug, name }) => `${id} (slug ${slug}, name ${printable(name)})`,
  )
  throw new CommandError(
    `${JSON.stringify(named)} may mean ${candidates.join(' or ')}. Name the project by its id.`,
  )
}
