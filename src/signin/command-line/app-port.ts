import { and, eq } from 'drizzle-orm'
import { html } from '../../http/pages/html.ts'
import { deployments } from '../../resources/deployments/table.ts'
import { projects } from '../../resources/projects/table.ts'
import type { Queries } from '../../storage/database.ts'
import { PageFailure } from '../pages/failure.ts'
import type { KeyRequest } from './key-request.ts'

/**
 * Refuses a request whose code would go to an app of this instance, at the port of a public project or a deployment. No
 * terminal listens there. An app can lead a browser here, and name the person's own machine as the one that asks.
 *
 * @throws PageFailure 400
 */
export function refuseAppPort(queries: Queries, { callback }: KeyRequest): void {
  if (callback === null) return
  const { port } = callback
  const isPublic = and(eq(projects.port, port), eq(projects.visibility, 'public'))
  const project = queries.select({ id: projects.id }).from(projects).where(isPublic).get()
  const ofPort = eq(deployments.port, port)
  const deployment = queries.select({ id: deployments.id }).from(deployments).where(ofPort).get()
  if (project === undefined && deployment === undefined) return
  throw new PageFailure(
    400,
    'An app asks for this key, and no terminal',
    html`<p class="notice failure">The key would go to the app at port ${String(port)} of this machine, which is ${project?.id ?? deployment?.id}. It gets none.</p>
<p>If you have run <code>berth login</code>, run it once more.</p>`,
  )
}
