import { join } from 'node:path'
import { AppPorts } from '../../hosting/app-runtime/ports.ts'
import { Packages } from '../../hosting/npm-mirror/packages.ts'
import { Gateway } from '../../hosting/sites/gateway.ts'
import { SlugHosts } from '../../hosting/sites/main-port/slug-hosts.ts'
import { machineNow } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { DeploymentsService } from '../deployments/service.ts'
import { ProjectApps } from '../projects/apps.ts'
import { ProjectCode } from '../projects/code.ts'
import { ProjectRecords } from '../projects/records.ts'
import { ProjectsService } from '../projects/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { Hosting } from './hosting.ts'
import type { AssemblyParts } from './parts.ts'
import { SitePorts } from './ports.ts'
import { Preparation } from './prepare.ts'

/** Projects, deployments and what they stand on, wired up. */
export type Assembled = ReturnType<typeof assemble>

/** Wires projects and deployments up. Nothing of it runs yet. */
export function assemble(parts: AssemblyParts) {
  const { secrets, randomFor, host, publicHost, ports, logger, dataDir } = parts
  const packages = new Packages({
    dataDir,
    registry: parts.npmRegistry,
    // Its credentials are seen by nobody, so that they need not repeat where others do.
    random: systemRandom,
    logger,
    now: machineNow,
  })
  const gateway = new Gateway({ host, publicHost, ports, logger })
  parts.route(new SlugHosts(gateway))
  const sitePorts = new SitePorts(gateway, parts.queries)
  const hosting = new Hosting({
    ...parts,
    sites: gateway,
    sitePorts,
    appPorts: new AppPorts(parts),
    logs: join(dataDir, 'logs'),
    preparation: new Preparation(packages),
  })
  const records = new ProjectRecords(parts)
  const code = new ProjectCode({
    ...parts,
    sources: {
      sourceFolders: parts.sourceFolders,
      allowLocal: parts.allowLocalSources,
      environment: parts.environment,
    },
  })
  const apps = new ProjectApps({ ...parts, records, code, hosting })
  const random = randomFor('project_name')
  const projects = new ProjectsService({ ...parts, random, sitePorts, records, code, apps })
  const deployments = new DeploymentsService({ ...parts, hosting })
  secrets.onChange((serverId, projectId) => {
    if (projectId === '') deployments.secretsChanged(serverId)
  })
  return {
    projects,
    deployments,
    preparation: hosting.preparation,
    async open(): Promise<void> {
      await Promise.all([apps.open(), deployments.open()])
      await hosting.sweep()
    },
    resume: (): void => apps.resume(),
    async stop(): Promise<void> {
      await apps.stop()
      await hosting.stop()
    },
    async close(): Promise<void> {
      await Promise.all([gateway.close(), packages.stop()])
    },
    serverStarted(serverId: string): void {
      apps.serverStarted(serverId)
      deployments.serverStarted(serverId)
    },
    serverStops(serverId: string): void {
      apps.serverStops(serverId)
      hosting.serverStops(serverId)
    },
    serverGoes({ id }: ServerRow): void {
      apps.serverGoes(id)
    },
    async serverGone(serverId: string): Promise<void> {
      packages.forget(serverId)
      await hosting.serverGone(serverId)
    },
  }
}
