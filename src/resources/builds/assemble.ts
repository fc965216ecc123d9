import { isInProject } from '../projects/inside.ts'
import { BuildLogs } from './logs.ts'
import type { BuildParts } from './parts.ts'
import { existing } from './pipeline.ts'
import { BuildQueue } from './queue.ts'
import type { BuildRecords } from './records.ts'
import { BuildsService } from './service.ts'
import type { BuildRow } from './table.ts'

/** What the entry adds. */
interface Assembly extends BuildParts {
  records: BuildRecords
  /** Absolute path of the folder of all builds' logs. */
  logFolder: string
}

/** Builds and what they stand on, wired up. */
export type Assembled = ReturnType<typeof assemble>

/** Wires builds up. Nothing of it runs yet. */
export function assemble({ templates, hosting, logFolder, ...parts }: Assembly) {
  const { queries, logger, servers, records } = parts
  const logs = new BuildLogs({ clock: parts.clock, logger, folder: logFolder })
  const queue = new BuildQueue({
    ...parts,
    logs,
    catalog: templates,
    preparation: hosting.preparation,
    deployments: hosting.deployments,
    isInProject: (serverId, path) => isInProject(queries, serverId, path.split('/')),
  })
  const service = new BuildsService({ records, queue, logs, servers })
  return {
    service,
    queue,
    logs,
    /** Ends builds that ran when berth was killed, and tidies up what it left. */
    async recover(rows: readonly BuildRow[]): Promise<void> {
      for (const row of rows) {
        const server = servers.find(row.serverId)
        const artifacts = server
          ? await existing({ workspace: servers.workspace(server) }, row.artifacts)
          : row.artifacts
        logs.conclude(row, 'berth ended unexpectedly while the build ran.')
        await logs.finish(row)
        records.ends(row, null, { artifacts })
      }
      await logs.sweep((serverId) => servers.find(serverId) !== undefined)
    },
  }
}
