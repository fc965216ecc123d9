import type { Callers } from '../http/authentication.ts'
import type { HostOptions } from '../http/host.ts'
import { once } from '../runtime/once.ts'
import type { Capture } from '../testing/journal/capture.ts'
import type { App, GroupApps } from './group-apps.ts'
import { type AppGroup, DASHBOARD_SEGMENTS, needsNamedFault } from './route-groups.ts'
import type { Services } from './services.ts'

/** Dependencies of `appsWithFaults`. */
interface FaultDependencies {
  services: Services
  host: HostOptions
  callers: Callers
  /** Null without a journal. */
  capture: Capture | null
  /** The apps without faults. */
  apps: GroupApps<AppGroup>
}

/**
 * Returns a function that gives each group an app to which the faults apply. The journal keeps a request also if a
 * fault responds to it. The rules are in `testing/faults/`, which is loaded at the first request.
 */
export function appsWithFaults({
  services,
  host,
  callers,
  capture,
  apps,
}: FaultDependencies): (group: AppGroup) => App {
  const gate = once(async () => {
    const { FaultGate } = await import('../testing/faults/gate.ts')
    return new FaultGate({
      store: services.faults,
      callers,
      host,
      ids: services.ids,
      needsNamedFault,
      dashboardSegments: DASHBOARD_SEGMENTS,
      onStrike: capture?.struck,
      backend: () => services.compute.backendFailure(),
    })
  })
  const applyFaults = async (request: Request, next: App['fetch']): Promise<Response> =>
    (await gate()).handle(request, next)
  const faulty = new Map<AppGroup, App>()
  return (group) => {
    const made = faulty.get(group)
    if (made) return made
    const next = async (request: Request): Promise<Response> => (await apps.get(group)).fetch(request)
    const app = { fetch: capture?.around(applyFaults, next) ?? ((request) => applyFaults(request, next)) }
    faulty.set(group, app)
    return app
  }
}
