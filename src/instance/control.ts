import type { SelectedDriver } from '../compute/select.ts'
import type { Config } from '../config/config.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import type { ControlGroup } from '../testing/api/groups.ts'
import type { ControlMaker } from './generation.ts'
import { GroupApps } from './group-apps.ts'
import type { InstanceState } from './state.ts'

/** Dependencies of the control API that outlive a generation. */
interface ControlParts {
  config: Config
  version: string
  commands: OperationCommands
  selected: SelectedDriver
  /** Returns the address that a request comes from, or null if it is no longer known. */
  addressOf: (request: Request) => string | null
  /** Returns the instance, which has this function itself. */
  instance: () => InstanceState
}

/**
 * Returns the function that makes the control API of each generation: as the API, one Elysia app for each group of routes,
 * created at the first request for it. The uptime counts from this call.
 */
export function controlMaker({
  config,
  version,
  commands,
  selected,
  addressOf,
  instance,
}: ControlParts): ControlMaker {
  const startedAt = performance.now()
  return async ({ services, credentials, callers, operations, stopping }) => {
    const [{ createControlApi }, { controlGroupOf }] = await Promise.all([
      import('../testing/api/app.ts'),
      import('../testing/api/groups.ts'),
    ])
    const api = createControlApi({
      services,
      host: { bound: config.host, publicHost: config.publicHost },
      guard: {
        adminToken: credentials.admin_token,
        callers,
        exposed: config.exposeControl,
        addressOf,
      },
      instance: {
        version,
        ephemeral: config.ephemeral,
        agent: config.agent,
        enforced: () => selected.enforced(),
        rejectedIsolations: selected.rejected.map(({ name }) => name),
        uptimeMs: () => Math.round(performance.now() - startedAt),
        isReady: () => instance().ready,
      },
      states: instance(),
      operations,
      commands,
      stopping,
    })
    const apps = new GroupApps<ControlGroup>((group) => api.mount([group]), services.logger)
    return {
      async fetch(request) {
        const app = await apps.get(controlGroupOf(request.url))
        return app.fetch(request)
      },
    }
  }
}
