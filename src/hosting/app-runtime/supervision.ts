import type { Sandbox } from '../../compute/driver.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AppAddress } from './health.ts'
import { HEALTH_TIMING, type HealthTiming } from './health-search.ts'
import type { AppLog } from './log/log.ts'
import type { AppPorts } from './ports.ts'

/** The state of an app. */
export type AppState =
  /** Its process runs and does not respond yet, and no earlier one responds. */
  | { readonly kind: 'starting' }
  /** It responds at this address. */
  | ({ readonly kind: 'healthy' } & AppAddress)
  /** It crashed and is started again after the delay, by the clock. */
  | {
      readonly kind: 'restarting'
      readonly reason: string
      readonly attempt: number
      readonly delayMs: number
    }
  /** It did not start, or crashed too often; only `start` or `replace` try again. */
  | { readonly kind: 'given_up'; readonly reason: string }
  /** It was stopped, or its server was. */
  | { readonly kind: 'stopped' }

/** Time limits, in milliseconds of real time. */
export interface SupervisorTiming extends HealthTiming {
  /** How long requests under way may keep a process that was replaced. */
  readonly drainMs: number
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number
}

/** The options of an `AppSupervisor`. */
export interface SupervisorOptions {
  /** The sandbox of the app; the supervisor ends with it. */
  sandbox: Sandbox
  /** The app's directory, relative to the workspace. */
  cwd: string
  clock: Clock
  /** The same for all apps of a berth. */
  ports: AppPorts
  log: AppLog
  /** Called for every change, in order. Must not throw. */
  onState(state: AppState): void
  timing?: Partial<SupervisorTiming>
}

/** Resolves when no request is under way any more at the app's old port; asked for when callers go to the new one. */
export type Drained = (port: number) => Promise<void>

/** The usual times. */
export const SUPERVISOR_TIMING: SupervisorTiming = { ...HEALTH_TIMING, drainMs: 10_000, graceMs: 10_000 }
