import type { Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { ExplainedError } from '../../errors.ts'
import type { AppLog, AppPlan } from '../../hosting/app.ts'
import type { ServerRow } from '../servers/table.ts'
import type { BuildRow } from './table.ts'

/** The objects that the phases of one build use. */
export interface BuildContext {
  readonly row: BuildRow
  readonly server: ServerRow
  readonly sandbox: Sandbox
  readonly workspace: Workspace
  readonly log: AppLog
  /** Fires when the build must end. */
  readonly signal: AbortSignal
  /**
   * Returns the server's current variables, with those that berth makes for what a plan asks for. Masks their values in
   * the log.
   */
  environment(plan?: AppPlan): Readonly<Record<string, string>>
  /** Reports whether builds ignore a path because it is in a project's directory. */
  isExcluded(path: string): boolean
}

/** The failure of a build. The message is for the user: the cause and, if there is one, the remedy. */
export class BuildFailure extends ExplainedError {
  override readonly name = 'BuildFailure'
}
