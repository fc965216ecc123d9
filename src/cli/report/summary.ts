import { type CoverageReport, coverageText } from './coverage.ts'
import { FINDING_KINDS, findingText, lastRefused, type RunFinding, refusedText } from './findings.ts'
import type { Recorded, RunOutcome } from './read.ts'

/** Most lines of a list. @bound reader */
const MOST_LINES = 50

/** Returns a summary in Markdown, for a person who looks at a job of a CI system. */
export function runSummaryOf(
  runs: readonly RunOutcome[],
  recorded: Recorded,
  coverage: CoverageReport,
  findings: readonly RunFinding[],
): string {
  const code = runs.find((run) => run.exit_code !== 0)?.exit_code ?? 0
  const { requests, events, deliveries, logs } = recorded
  const refused = requests.filter(({ status }) => status >= 400).length
  const lost = deliveries.filter(({ status }) => status === 'failed' || status === 'disabled').length
  const kinds = Object.entries(FINDING_KINDS) as [RunFinding['kind'], string][]
  return [
    `## berth run: ${code === 0 ? 'passed' : `failed with ${code}`}`,
    '',
    ...runs.map(
      (run) => `${codeOf(run.command.join(' '))} ended with ${run.exit_code} after ${secondsOf(run)} s.  `,
    ),
    `The API: ${coverageText(coverage)}.`,
    '',
    '| requests | refused | events | deliveries | failed deliveries | logs |',
    '|---:|---:|---:|---:|---:|---:|',
    `| ${requests.length} | ${refused} | ${events.length} | ${deliveries.length} | ${lost} | ${logs.length} |`,
    '',
    ...(code === 0 ? [] : listOf('The last refused requests', lastRefused(requests).map(refusedText))),
    ...kinds.flatMap(([kind, title]) =>
      listOf(title, findings.filter((finding) => finding.kind === kind).map(findingText)),
    ),
  ].join('\n')
}

/** Returns how long a run took, in seconds. */
export const secondsOf = ({ began_at, ended_at }: RunOutcome): string =>
  ((Date.parse(ended_at) - Date.parse(began_at)) / 1000).toFixed(1)

function listOf(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return []
  const more = lines.length > MOST_LINES ? [`- and ${lines.length - MOST_LINES} more`] : []
  return [
    `### ${title[0]?.toUpperCase()}${title.slice(1)}`,
    '',
    ...lines.slice(0, MOST_LINES).map((line) => `- ${codeOf(line)}`),
    ...more,
    '',
  ]
}

/** Returns a text as code of one line (CommonMark 0.31, section 6.1), so that nothing in it is markup. */
function codeOf(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  const space = line.startsWith('`') || line.endsWith('`') ? ' ' : ''
  return `${fence}${space}${line}${space}${fence}`
}
