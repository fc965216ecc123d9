import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DashboardAssets } from '../../http/dashboard/assets.ts'
import { type RecordedRun, reportDocument } from '../../http/dashboard/report-page.ts'
import { REPORT } from '../../testing/report/directory.ts'
import type { WholeEntry } from '../../testing/testing.ts'
import { versionInfo } from '../version.ts'
import { FINDING_KINDS, findingText, type RunFinding } from './findings.ts'
import { type Recorded, type RunOutcome, readTranscript } from './read.ts'
import { secondsOf } from './summary.ts'

/**
 * Characters of the page for bodies of requests, and of each log; and most entries of a list. The files beside the page have
 * everything.
 */
const ROOM = { bodies: 12_000_000, log: 1_000_000, entries: 20_000, transcripts: 4_000_000 }

/** What the page is made of. */
interface PageParts {
  readonly recorded: Recorded
  readonly runs: readonly RunOutcome[]
  readonly findings: readonly RunFinding[]
  readonly baseUrl: string
}

/** Returns the page of a report. */
export async function reportPage(directory: string, parts: PageParts): Promise<string> {
  const { recorded, runs, findings, baseUrl } = parts
  const { events, deliveries, objects } = recorded
  const omitted: string[] = []
  const newest = <Value>(values: readonly Value[], what: string): Value[] => {
    if (values.length > ROOM.entries)
      omitted.push(
        `The page has the last ${ROOM.entries} of ${values.length} ${what}. The files beside it have all.`,
      )
    return values.slice(-ROOM.entries).reverse()
  }
  const { version } = versionInfo()
  const data: RecordedRun = {
    title: titleOf(runs),
    lines: linesOf(runs, findings),
    requests: withinRoom(newest(recorded.requests, 'requests'), omitted),
    events: newest(events, 'events'),
    deliveries: newest(deliveries, 'deliveries'),
    objects: newest(objects, 'changes of objects').reverse(),
    transcripts: transcriptsOf(directory, recorded),
    logs: recorded.logs.map((name) => shownLog(directory, name)),
    omitted,
    context: {
      csrf: '',
      account: { id: '', label: '' },
      session_id: '',
      is_admin: true,
      is_first_account: false,
      version,
      data_dir: directory,
      base_url: baseUrl,
      now: lastTimeOf(recorded) ?? runs.at(-1)?.ended_at ?? '1970-01-01T00:00:00.000Z',
      is_report: true,
    },
  }
  return reportDocument(data, await new DashboardAssets().report())
}

/** Returns when something happened last, by berth's clock; undefined if nothing did. */
const lastTimeOf = ({ requests, events, objects }: Recorded): string | undefined =>
  [requests.at(-1)?.at, events.at(-1)?.created_at, objects.at(-1)?.at]
    .filter((at) => at !== undefined)
    .sort()
    .at(-1)

function titleOf(runs: readonly RunOutcome[]): string {
  if (runs.length === 0) return 'A run that was killed'
  const failed = runs.find(({ exit_code }) => exit_code !== 0)
  return failed === undefined ? 'The run passed' : `The run failed with ${failed.exit_code}`
}

/** Returns how the run went, in lines; those of a list are indented. */
function linesOf(runs: readonly RunOutcome[], findings: readonly RunFinding[]): string[] {
  const kinds = Object.entries(FINDING_KINDS) as [RunFinding['kind'], string][]
  return [
    ...runs.map((run) => `${run.command.join(' ')} ended with ${run.exit_code} after ${secondsOf(run)} s.`),
    ...kinds.flatMap(([kind, title]) => {
      const found = findings.filter((finding) => finding.kind === kind)
      if (found.length === 0) return []
      return [
        `${title[0]?.toUpperCase()}${title.slice(1)} (${found.length}):`,
        ...found.map((finding) => `  ${findingText(finding)}`),
      ]
    }),
  ]
}

/** Leaves the bodies of the oldest requests out if they take too much room. */
function withinRoom(requests: readonly WholeEntry[], omitted: string[]): WholeEntry[] {
  let left = ROOM.bodies
  let without = 0
  const shown = requests.map((request) => {
    left -= sizeOf(request.request) + sizeOf(request.response)
    if (left >= 0) return request
    without += 1
    return { ...request, request: cut(request.request), response: cut(request.response) }
  })
  if (without > 0)
    omitted.push(
      `The page has no bodies of the first ${without} requests. ${REPORT.journal} beside it has them.`,
    )
  return shown
}

const sizeOf = (part: WholeEntry['request']): number =>
  part === null ? 0 : typeof part.body === 'string' ? part.body.length : JSON.stringify(part.body).length

const cut = (part: WholeEntry['request']): WholeEntry['request'] => part && { body: '', truncated: true }

function transcriptsOf(directory: string, { objects }: Recorded): Record<string, unknown[]> {
  let left = ROOM.transcripts
  const ids = new Set(objects.flatMap(({ type, id }) => (type === 'task' ? [id] : [])))
  const shown: Record<string, unknown[]> = {}
  for (const id of ids) {
    const events = readTranscript(directory, id)
    left -= JSON.stringify(events).length
    if (left >= 0) shown[id] = events
  }
  return shown
}

function shownLog(directory: string, name: string): RecordedRun['logs'][number] {
  const text = readFileSync(join(directory, REPORT.logs, name), 'utf8').trimEnd()
  const isCut = text.length > ROOM.log
  return { name, text: isCut ? text.slice(text.indexOf('\n', text.length - ROOM.log) + 1) : text, isCut }
}
