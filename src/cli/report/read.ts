import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { REPORT } from '../../testing/report/directory.ts'
import type { Delivery, EmittedEvent, Fault, RecordedObject, WholeEntry } from '../../testing/testing.ts'

/** Something that a run left undone, as it was recorded. */
type Finding =
  | { readonly kind: 'unapplied_fault'; readonly fault: Fault }
  | { readonly kind: 'expired_wait'; readonly query: Readonly<Record<string, unknown>> }
  | { readonly kind: 'run'; readonly run: RunOutcome }

/** How a run went. */
export interface RunOutcome {
  readonly command: readonly string[]
  readonly exit_code: number
  /** When it began and ended by the machine's clock, ISO 8601. */
  readonly began_at: string
  readonly ended_at: string
}

/** What was recorded of a run, or of several that share a report. */
export interface Recorded {
  /** Oldest first. */
  readonly requests: readonly WholeEntry[]
  readonly events: readonly EmittedEvent[]
  /** Each once, as it was last. */
  readonly deliveries: readonly Delivery[]
  /** Each change, oldest first. */
  readonly objects: readonly RecordedObject[]
  readonly unappliedFaults: readonly Fault[]
  readonly expiredWaits: readonly Readonly<Record<string, unknown>>[]
  /** The runs that have ended, of those that share the report. */
  readonly runs: readonly RunOutcome[]
  /** Names of the files below `logs`. */
  readonly logs: readonly string[]
}

/** Reads what was recorded in a directory, also of a run that was killed. */
export function readRecorded(directory: string): Recorded {
  const linesOf = <Line>(file: string): Line[] => parseLines<Line>(join(directory, file))
  const findings = linesOf<Finding>(REPORT.findings)
  const deliveries = new Map(linesOf<Delivery>(REPORT.deliveries).map((one) => [one.id, one]))
  return {
    requests: linesOf(REPORT.journal),
    events: linesOf(REPORT.events),
    deliveries: [...deliveries.values()],
    objects: linesOf(REPORT.objects),
    unappliedFaults: findings.flatMap((one) => (one.kind === 'unapplied_fault' ? [one.fault] : [])),
    expiredWaits: findings.flatMap((one) => (one.kind === 'expired_wait' ? [one.query] : [])),
    runs: findings.flatMap((one) => (one.kind === 'run' ? [one.run] : [])),
    logs: (ifPresent(() => readdirSync(join(directory, REPORT.logs))) ?? []).sort(),
  }
}

/** Reads the transcript of a task: its events, oldest first. */
export const readTranscript = (directory: string, taskId: string): unknown[] =>
  parseLines(join(directory, REPORT.transcripts, `${taskId}.jsonl`))

/** Parses JSON Lines. Skips a last one that a killed run has not written completely. */
function parseLines<Line>(path: string): Line[] {
  const text = ifPresent(() => readFileSync(path, 'utf8')) ?? ''
  return text.split('\n').flatMap((line) => {
    if (line === '') return []
    try {
      return [JSON.parse(line) as Line]
    } catch {
      return []
    }
  })
}
