import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { namesIn } from '../../runtime/if-present.ts'
import { isReport, REPORT } from '../../testing/report/directory.ts'
import type { ProcessContext } from '../process-context.ts'
import { userDirectory } from '../user-directory.ts'

/** Directory of the report in the working directory, where `CI` is set. */
export const CI_DIRECTORY = 'berth-report'

/** Returns the directory of the reports of failed runs; null for a user without a home. */
export function reportsDirectory(env: ProcessContext['env']): string | null {
  const state = userDirectory(env, 'XDG_STATE_HOME', '.local/state')
  return state && join(state, 'berth/reports')
}

/** Lists the reports in a directory, the oldest first. */
export const listReports = (directory: string): string[] =>
  namesIn(directory)
    .sort()
    .map((name) => join(directory, name))
    .filter(isReport)

/** Finds the report that a person means who names none: that of the working directory, else the newest one. */
export function findReport({ env, cwd }: ProcessContext): string | null {
  const here = join(cwd, CI_DIRECTORY)
  if (isReport(here)) return here
  const reports = reportsDirectory(env)
  return reports === null ? null : (listReports(reports).at(-1) ?? null)
}

/** Reports whether a report has its page: that of a run that was killed has none. */
export const isFinished = (directory: string): boolean => existsSync(join(directory, REPORT.page))
