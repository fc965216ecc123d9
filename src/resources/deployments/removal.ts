import { sql } from 'drizzle-orm'
import { siteUrl } from '../../hosting/app.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'

/** Dependencies of the listener. */
interface RemovalDependencies {
  queries: Queries
  outbox: Outbox
  /** The address that sites listen on. */
  host: string
}

/**
 * Returns a listener that emits `deployment.removed` when a server with a deployment is deleted, running or sleeping.
 * It does not need the deployments service, which may not be loaded yet.
 */
export const removalListener = ({ queries, outbox, host }: RemovalDependencies): ServerLifecycleListener => ({
  serverDeleting({ id, accountId }) {
    // Plain SQL: every start would pay for the table.
    const [published] = queries.values<[number]>(sql`SELECT port FROM deployments WHERE server_id = ${id}`)
    if (!published) return
    const payload = { server_id: id, url: siteUrl(host, published[0]) }
    outbox.emit(accountId, 'deployment.removed', payload)
  },
})
