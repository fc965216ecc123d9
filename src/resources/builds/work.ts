import type { Sandbox } from '../../compute/driver.ts'
import type { Workspace } from '../../compute/workspace.ts'
import type { AppLog } from '../../hosting/app-runtime/log/log.ts'
import type { ServerRow } from '../servers/table.ts'
import type { BuildRow } from './table.ts'

/** What the phases of one build work on. */
export interface Work {
  readonly row: BuildRow
  readonly server: ServerRow
  readonly sandbox: Sandbox
  readonly workspace: Workspace
  readonly log: AppLog
  /** Fires when the build is to end at once. */
  readonly signal: AbortSignal
  /** The server's own variables now; from then on the log shows none of their values. */
  environment(): Readonly<Record<string, string>>
  /** Whether a path is no business of builds: it lies in the folder of a project. */
  isElsewhere(path: string): boolean
}

/** A build that cannot go on, with a sentence for a person: the cause and, where there is one, the remedy. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure'
}
