/**
 * What the rest of berth knows of an app without running it: its plan, its directory in the source, its log, and how it failed.
 * `hosting.ts` runs apps; `detection/detect.ts` finds out what an app is.
 */
export { findAppDirectory, type LinkedTree, workspaceTree } from './app-directory.ts'
export type { LogOutput } from './app-runtime/log/log.ts'
export { AppLog } from './app-runtime/log/log.ts'
export type { LogEntry, LogSelection, LogSource } from './app-runtime/log/log-file.ts'
export {
  AppError,
  AppFailure,
  type AppPlan,
  type GeneratedSecret,
  missingVariables,
  NoAppFound,
  storedPlan,
  summaryOf,
} from './app-runtime/plan.ts'
export type { AppCrash, FailedChange } from './app-runtime/supervision.ts'
export { beginningOfCommand } from './detection/node/package-json.ts'
export { GatewayError, type ReservedPort, siteUrl } from './sites/upstream.ts'
export { WORKER_STATUSES } from './workers.ts'
