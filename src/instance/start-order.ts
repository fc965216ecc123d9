import { existsSync } from 'node:fs'
import type { Lifecycle, Service } from '../runtime/service.ts'
import type { Services } from './services.ts'

/** Steps of start and stop that are not services. */
interface Boundary {
  /** Resolves when no request is open any more, or after a while. Called when nothing runs that one could wait for. */
  requestsEnded: () => Promise<void>
  /** Keeps a copy of the first key. */
  keepFirstKey: () => void
  /** Applies the fixtures that were given. */
  applyFixtures: () => Promise<void>
}

/** Lists the services in the order in which they start. They stop in reverse. */
export function startOrder(services: Services, boundary: Boundary): readonly Service[] {
  const { signIn, keys, deliveries, metering, servers, faults, state, lazy } = services
  const { tasks, builds, apps, terminals, executions, changeStreams } = lazy
  const hasApps = (): boolean => state.hasApps()
  const hasUnfinishedBuilds = (): boolean => state.hasUnfinishedBuilds()
  return [
    // First: their callers wait from the ready line on.
    apps.service('ports of sites', ports, { recover: hasApps }),
    { name: 'metering', recover: async () => metering.recover() },
    { name: 'signing in', stop: () => signIn.stop() },
    { name: 'keys', stop: () => keys.stop() },
    deliveries,
    apps.service('unfinished pushes', unfinishedPushes, { recover: () => state.hasUnfinishedPushes() }),
    // Services above this line stop only after open requests have ended.
    { name: 'open requests', stop: boundary.requestsEnded },
    apps.service('sites', sites),
    builds.service('build logs', (service) => ({ stop: () => service.close() })),
    {
      name: 'servers',
      recover: () => servers.takeStock(),
      start: () => servers.recover(),
      stop: () => servers.shutDown(),
    },
    terminals.service('terminals', (service) => service),
    executions.service(
      'executions',
      (service) => ({ recover: async () => service.recover(), stop: () => service.stop() }),
      { recover: () => state.hasExecutions() || existsSync(services.executionsDirectory) },
    ),
    apps.service('projects and deployments', bringUps, { start: hasApps }),
    builds.service('builds', (service) => service, {
      recover: hasUnfinishedBuilds,
      start: hasUnfinishedBuilds,
    }),
    tasks.service('tasks', (service) => service, { recover: () => state.hasUnfinishedTasks() }),
    changeStreams.service('streams of changes', ({ streams }) => streams),
    { name: 'faults', stop: () => faults.stop() },
    { name: 'the copy of the first key', start: boundary.keepFirstKey },
    { name: 'fixtures', start: boundary.applyFixtures },
  ]
}

/** Makes the files those of one version that a killed berth was changing. */
const unfinishedPushes = ({ projects, deployments }: Apps): Lifecycle => ({
  async recover() {
    await projects.recover()
    await deployments.recover()
  },
})

type Apps = Awaited<ReturnType<Services['lazy']['apps']['get']>>

/** Opens the sites, at which callers wait until the apps run again. */
const ports = ({ hosting, projects, deployments }: Apps): Lifecycle => ({
  async recover() {
    hosting.claimPorts()
    await Promise.all([projects.apps.exposeAll(), deployments.open()])
    await hosting.removeStaleLogs()
  },
})

/** Closes the sites when nothing runs anymore that a caller could wait for. */
const sites = ({ hosting, route }: Apps): Lifecycle => ({
  async stop() {
    await hosting.close()
    route(null)
  },
})

/** Resumes the bring-ups that an earlier berth did not finish. Apps that ran start and end with their servers. */
const bringUps = ({ hosting, projects }: Apps): Lifecycle => ({
  start: () => projects.apps.resumeBringUps(),
  async stop() {
    await projects.apps.stop()
    await hosting.stop()
  },
})
