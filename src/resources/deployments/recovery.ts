import type { AppPlan } from '../../hosting/app-runtime/plan.ts'
import type { HostedApp } from '../../hosting/hosted-app.ts'
import { type RecoveryDependencies, recoverChange } from '../projects/recovery.ts'
import { build, locationOf } from './publication.ts'
import type { DeploymentRow } from './table.ts'

/** Dependencies of the recovery. */
interface DeploymentRecoveryDependencies
  extends Pick<RecoveryDependencies, 'servers' | 'logger' | 'hosting' | 'unfinished'> {
  /** Returns the deployment of a server. */
  find: (serverId: string) => DeploymentRow | undefined
  /** Records why the last change of a deployment did not come up. */
  noteFailedChange: (serverId: string, reason: string) => void
}

/** Recovers the pushes to deployments that an earlier berth did not finish. A version that has to be built again stays noted. */
export async function recoverDeployments(dependencies: DeploymentRecoveryDependencies): Promise<void> {
  const { unfinished, find, noteFailedChange } = dependencies
  for (const push of unfinished.list()) {
    const { appId, serverId, change } = push
    if (appId !== serverId) continue
    const row = find(serverId)
    if (change.state !== 'rebuild') {
      const { text } = await recoverChange(dependencies, push, 'deploy')
      if (row !== undefined) noteFailedChange(serverId, text)
    }
    const isBuilt = row !== undefined && (row.plan.install !== null || row.plan.build !== null)
    if (change.state !== 'next' && change.isBuiltOver && isBuilt)
      unfinished.put(appId, serverId, { ...change, state: 'rebuild' })
    else unfinished.drop(appId)
  }
}

/**
 * Installs and builds a version whose files were put back at the start of berth, if that is to be done still.
 *
 * @throws AppError
 */
export async function rebuildRecovered(
  { unfinished, servers, hosting }: Pick<RecoveryDependencies, 'unfinished' | 'servers' | 'hosting'>,
  app: HostedApp,
  plan: AppPlan,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const { serverId } = app
  const server = servers.records.find(serverId)
  const sandbox = servers.lifecycle.sandbox(serverId)
  if (unfinished.find(serverId)?.state !== 'rebuild' || !server || !sandbox) return
  const location = locationOf(app, sandbox, servers.workspace(server), '', hosting.stopSignal(serverId))
  await build(hosting.preparation, { app, location, environment: () => environment }, plan)
  unfinished.drop(serverId)
}
