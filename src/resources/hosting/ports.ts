import { eq } from 'drizzle-orm'
import type { SiteHost } from '../../gateway/upstream.ts'
import type { Queries } from '../../storage/database.ts'
import { deployments } from '../deployments/table.ts'
import { projects } from '../projects/table.ts'

/** A port that neither a project nor a deployment has. @throws GatewayError where there is none */
export const reservePort = (sites: SiteHost, queries: Queries): Promise<number> =>
  sites.reserve(
    (port) =>
      queries.select({ id: projects.id }).from(projects).where(eq(projects.port, port)).get() !== undefined ||
      queries.select({ id: deployments.id }).from(deployments).where(eq(deployments.port, port)).get() !==
        undefined,
  )
