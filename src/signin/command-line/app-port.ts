import { html } from '../../http/pages/html.ts'
import type { Queries } from '../../storage/database.ts'
import { appAtPort } from '../app-at-port.ts'
import { PageFailure } from '../pages/failure.ts'
import type { KeyRequest } from './key-request.ts'

/**
 * Refuses a request whose code would go to an app of this instance. No terminal listens at its port, but an app can lead a
 * browser here, and name the person's own machine as the one that asks.
 *
 * @throws PageFailure 400
 */
export function refuseAppPort(queries: Queries, { callback }: KeyRequest): void {
  const app = callback && appAtPort(queries, callback.port)
  if (callback === null || app === null) return
  throw new PageFailure(
    400,
    'An app asks for this key, and no terminal',
    html`<p class="notice failure">The key would go to the app at port ${String(callback.port)} of this machine, which is that of ${app}. It gets none.</p>
<p>If you have run <code>berth login</code>, run it once more.</p>`,
  )
}
