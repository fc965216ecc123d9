import { storedPlan } from '../../hosting/app-runtime/plan.ts'
import type { Detection } from '../../hosting/detection/detect.ts'
import type { DetectedApp } from './model.ts'
import { toDetectedApp } from './table.ts'

/** What was detected, as the API shows it. Fields are null for what was not found. */
export type ShownDetection = Omit<DetectedApp, 'kind'> & {
  readonly kind: string | null
  readonly berth_json: Readonly<Record<string, unknown>> | null
  /** Why the app cannot be run, with the remedy; null if it can. */
  readonly problem: string | null
}

/** Returns what was detected as the API shows it. */
export function toDetection({ kind, start, problem, berthJson, ...rest }: Detection): ShownDetection {
  const shown = toDetectedApp(
    storedPlan({ ...rest, kind: kind ?? '', start: start ?? { kind: 'command', command: '', port: null } }),
  )
  return {
    ...shown,
    kind,
    start: start === null ? null : shown.start,
    berth_json: berthJson,
    problem: problem?.message ?? null,
  }
}
