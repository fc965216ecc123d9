import type { Hosting } from '../../hosting/hosting.ts'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ServersService } from '../servers/service.ts'
import { IDLE_PHASES } from './apps.ts'
import { recoverFiles } from './previous-code.ts'
import type { ProjectRecords } from './records.ts'
import type { ProjectRow } from './table.ts'
import type { UnfinishedChange, UnfinishedPushes } from './unfinished-pushes.ts'

/** Dependencies of the recovery. */
export interface RecoveryDependencies {
  clock: Clock
  ids: Ids
  logger: Logger
  hosting: Hosting
  servers: ServersService
  records: ProjectRecords
  unfinished: UnfinishedPushes
}

/** What became of the files that an earlier berth was changing, for a person. */
interface RecoveredFiles {
  /** Whether the files are those of before; false if they are those of the push, or could not be recovered. */
  readonly isBefore: boolean
  readonly text: string
}

/**
 * Makes the files those of one version that an earlier berth was changing when it ended.
 *
 * @param act what the change was, as `push`
 */
export async function recoverChange(
  { servers, logger, hosting }: Pick<RecoveryDependencies, 'servers' | 'logger' | 'hosting'>,
  { appId, serverId, change }: { appId: string; serverId: string; change: UnfinishedChange },
  act: 'push' | 'deploy',
): Promise<RecoveredFiles> {
  const server = servers.records.find(serverId)
  if (server === undefined) return { isBefore: false, text: '' }
  const isBefore = change.state !== 'next'
  let text = isBefore
    ? `berth was ended before the ${act} came up. The files of the version before are back in place; ${act} again.`
    : `berth was ended amid the ${act}. Its files are all in place now: those before were too large to be kept.`
  try {
    await recoverFiles(servers.workspace(server), change)
  } catch (error) {
    logger.error('files that were being changed could not be recovered', { appId, error })
    text = `berth was ended amid the ${act}, and files of both versions are in place: ${messageOf(error)} ${act === 'push' ? 'Push' : 'Deploy'} again.`
  }
  const log = await hosting.openLog(appId)
  log.append('berth', text)
  await log.close()
  return { isBefore, text }
}

/** Recovers the pushes to projects that an earlier berth did not finish. The bring-ups that it notes are resumed with the others. */
export async function recoverPushes(dependencies: RecoveryDependencies): Promise<void> {
  const { unfinished, records } = dependencies
  for (const push of unfinished.list()) {
    if (push.appId === push.serverId) continue
    const row = records.find(push.appId)
    if (row !== undefined) {
      const recovered = await recoverChange(dependencies, push, 'push')
      noteRecovered(dependencies, row, push.change, recovered)
    }
    unfinished.drop(push.appId)
  }
}

function noteRecovered(
  { ids, records, clock }: RecoveryDependencies,
  { id, initPhase, proceed }: ProjectRow,
  change: UnfinishedChange,
  { isBefore, text }: RecoveredFiles,
): void {
  const { plan, paths, nextPaths, isBuiltOver, wasUp, state } = change
  const begin = (phase: 'install' | 'start'): void =>
    records.startBringUp(id, ids.next('irun'), phase, proceed)
  if (!isBefore) {
    records.setCode(id, nextPaths, change.nextAppDirectory)
    begin('install')
    return
  }
  if (state === 'before') {
    records.setCode(id, paths, change.appDirectory)
    if (plan !== null) records.setPlan(id, plan)
    records.setFailedChange(id, { reason: text, at: clock.now() })
  }
  if (isBuiltOver) begin('install')
  else if (wasUp && !IDLE_PHASES.has(initPhase)) begin('start')
}
