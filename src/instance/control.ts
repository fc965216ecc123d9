import type { AnyElysia } from 'elysia'
import { kindOf, type SelectedDriver } from '../compute/compute.ts'
import type { Config } from '../config/config.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import type { Callers } from '../http/authentication.ts'
import { once } from '../runtime/once.ts'
import type { CredentialsFile } from '../storage/data-directory.ts'
import { type ControlGroup, loadControlApi, type StateOperations } from '../testing/testing.ts'
import { type GroupApp, GroupApps } from './group-apps.ts'
import type { Services } from './services.ts'

/** Dependencies of the control API. */
interface ControlDependencies {
  config: Config
  version: string
  commands: OperationCommands
  driver: SelectedDriver
  /** Returns the address that a request comes from, or null if it is no longer known. */
  addressOf: (request: Request) => string | null
  /** When the instance started, by the clock of `performance`. */
  startedAt: number
  /** Saves and replaces the state. */
  states: StateOperations
  /** Reports whether recovery and fixtures are complete. */
  isReady: () => boolean
  services: Services
  credentials: CredentialsFile
  /** The callers of running requests. */
  callers: Callers
  /** Returns all routes of the API that documents describe. */
  whole: () => Promise<AnyElysia>
  /** Fires when the generation ends: streams end too. */
  stopping: AbortSignal
}

/** Makes the control API of a generation: as the API, one Elysia app for each group of routes, created at the first request for it. */
export async function createControl(dependencies: ControlDependencies): Promise<GroupApp> {
  const { config, version, commands, driver, addressOf, startedAt, states, isReady } = dependencies
  const { services, credentials, callers, whole, stopping } = dependencies
  const [{ controlGroupOf, createControlApi }, { describedOperations }, { OperationIndex }] =
    await Promise.all([
      loadControlApi(),
      import('../contract/operation.ts'),
      import('../contract/operations.ts'),
    ])
  const api = createControlApi({
    services,
    host: { bound: config.host, publicHost: config.publicHost },
    guard: { adminToken: credentials.admin_token, callers, exposed: config.exposeControl, addressOf },
    instance: {
      version,
      ephemeral: config.ephemeral,
      agent: config.agent,
      compute: kindOf(driver.driver.name).compute,
      enforced: () => driver.enforced(),
      rejectedIsolations: driver.rejected.map(({ name }) => name),
      uptimeMs: () => Math.round(performance.now() - startedAt),
      isReady,
    },
    states,
    operations: once(async () => new OperationIndex(describedOperations(await whole()))),
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
