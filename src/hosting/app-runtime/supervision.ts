import type { CommandOwner, Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AppAddress } from './health.ts'
import { HEALTH_TIMING, type HealthTiming } from './health-search.ts'
import type { AppLog } from './log/log.ts'
import type { ProcessEnd } from './plan.ts'
import type { AppPorts } from './ports.ts'

/** The state of a program: an app's, or a worker. */
export type ProgramState =
  /** A process runs and does not respond yet, and no earlier one responds. */
  | { readonly kind: 'starting' }
  /** The app responds at this address. */
  | ({ readonly kind: 'healthy' } & AppAddress)
  /** The worker runs. */
  | { readonly kind: 'running' }
  /** The app crashed and restarts after the delay, by the clock. */
  | {
      readonly kind: 'restarting'
      readonly reason: string
      readonly attempt: number
      readonly delayMs: number
    }
  /** The app did not start, or crashed too often. Only `start` or `replace` tries again. */
  | { readonly kind: 'given_up'; readonly reason: string }
  /** The worker has done its work, and is not started again. */
  | { readonly kind: 'ended' }
  /** The app or its server was stopped. */
  | { readonly kind: 'stopped' }

/** Why an app that ran does not respond any more. */
export interface AppCrash extends ProcessEnd {
  /** When it responded last, in milliseconds since 1970. */
  readonly since: number
  /** When it is started again, in milliseconds since 1970, and for which time; null if nothing does that. */
  readonly restart: { readonly at: number; readonly attempt: number } | null
}

/** A change of an app's files that did not come up, while the version before goes on. */
export interface FailedChange {
  /** For a person. */
  readonly reason: string
  /** When that was known, in milliseconds since 1970. */
  readonly at: number
}

/** Largest number of restarts of an app within 5 minutes. @bound program */
export const MAX_RESTARTS = 5

/**
 * Describes a crash for a person: `The app crashed 12 s ago: it ended with exit code 1. It is started again in 4 s (3 of 5).`
 *
 * @param now milliseconds since 1970
 */
export function describeCrash(crash: AppCrash, now: number): string {
  const ago = Math.max(0, Math.floor((now - crash.since) / 1000))
  const time = ago < 120 ? `${ago} s` : `${Math.floor(ago / 60)} min`
  return `The app crashed ${time} ago: ${describeEnd(crash, now)}`
}

/**
 * Describes how a crashed app ended and what comes next: `it ended with exit code 1. It is started again in 4 s (3 of 5).`
 *
 * @param now milliseconds since 1970
 */
export function describeEnd({ reason, restart }: AppCrash, now: number): string {
  if (restart === null) return `${reason} Nothing starts it again by itself.`
  const left = Math.ceil((restart.at - now) / 1000)
  const when = left > 0 ? `It is started again in ${left} s` : 'It is being started again'
  return `${reason} ${when} (${restart.attempt} of ${MAX_RESTARTS}).`
}

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
  /** Returns the files of its server. @throws ComputeError if the server is gone */
  workspace: () => Workspace
  /** Returns the slug of the project of this id; null if there is none. */
  slugOf(id: string): string | null
  /** Called for every change, in order. Must not throw. */
  onState(state: ProgramState): void
  timing?: Partial<SupervisorTiming>
}

/** The options of one start of a version. */
export interface StartOptions {
  /** Called once when its process listens, or has not ended soon, and its health is checked. */
  spawned: () => void
  /** Stops it if aborted before it responds. An earlier version goes on. */
  withdrawn: AbortSignal
  /** Called before an earlier version that had to end first is started again. */
  beforeFallback: () => Promise<void>
}

/** Resolves when no request is under way at the app's old port. Called when new requests go to the new one. */
export type Drained = (port: number) => Promise<void>

/** Default time limits. */
export const SUPERVISOR_TIMING: SupervisorTiming = { ...HEALTH_TIMING, drainMs: 10_000, graceMs: 10_000 }
