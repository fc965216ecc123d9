import type { Sandbox } from '../../compute/driver.ts'
import type { CommandOwner } from '../../compute/server-process.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AppAddress } from './health.ts'
import { HEALTH_TIMING, type HealthTiming } from './health-search.ts'
import type { AppLog } from './log/log.ts'
import type { AppPorts } from './ports.ts'

/** The state of an app. */
export type AppState =
  /** A process runs and does not respond yet, and no earlier one responds. */
  | { readonly kind: 'starting' }
  /** The app responds at this address. */
  | ({ readonly kind: 'healthy' } & AppAddress)
  /** The app crashed and restarts after the delay, by the clock. */
  | {
      readonly kind: 'restarting'
      readonly reason: string
      readonly attempt: number
      readonly delayMs: number
    }
  /** The app did not start, or crashed too often. Only `start` or `replace` tries again. */
  | { readonly kind: 'given_up'; readonly reason: string }
  /** The app or its server was stopped. */
  | { readonly kind: 'stopped' }

/** Time limits, in milliseconds of real time. */
export interface SupervisorTiming extends HealthTiming {
  /** For requests under way at a process that was replaced. */
  readonly drainMs: number
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number
}

/** The options of an `AppSupervisor`. */
export interface SupervisorOptions {
  /** What the app's processes belong to. */
  owner: CommandOwner
  /** The sandbox of the app. The supervisor ends with it. */
  sandbox: Sandbox
  /** The app's directory, relative to the workspace. */
  cwd: string
  clock: Clock
  /** Shared by all apps of a berth. */
  ports: AppPorts
  log: AppLog
  /** Called for every change, in order. Must not throw. */
  onState(state: AppState): void
  timing?: Partial<SupervisorTiming>
}

/** Resolves when no request is under way at the app's old port. Called when new requests go to the new one. */
export type Drained = (port: number) => Promise<void>

/** Default time limits. */
export const SUPERVISOR_TIMING: SupervisorTiming = { ...HEALTH_TIMING, drainMs: 10_000, graceMs: 10_000 }
