import type { Delivery } from '../../testing/testing.ts'
import type { CoverageReport } from './coverage.ts'
import { findingText, type RunFinding } from './findings.ts'
import type { Recorded } from './read.ts'

/** A case of a suite. */
interface TestCase {
  readonly name: string
  /** Why it failed; null if it passed. */
  readonly failure: string | null
  /** Seconds. */
  readonly time?: number
}

/**
 * Returns a report for CI systems in the format of JUnit: a case for each operation that was called, each near miss, each fault that
 * never applied, and each delivery.
 */
export function junitReport(
  recorded: Recorded,
  coverage: CoverageReport,
  findings: readonly RunFinding[],
): string {
  const failed = (kind: RunFinding['kind']): TestCase[] =>
    findings
      .filter((finding) => finding.kind === kind)
      .map((finding) => ({ name: finding.name, failure: findingText(finding) }))
  const suites = [
    suite('operations', operationCases(recorded, coverage)),
    suite('near misses', failed('near_miss')),
    suite('faults', failed('unapplied_fault')),
    suite('waits', failed('expired_wait')),
    suite('deliveries', recorded.deliveries.map(deliveryCase)),
  ]
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="berth">\n${suites.join('')}</testsuites>\n`
}

/** A case fails if berth's own response was an internal error, or one that its documentation lacks. */
function operationCases({ requests }: Recorded, { operations }: CoverageReport): TestCase[] {
  const times = new Map<string, number>()
  const broken = new Set<string>()
  for (const { operation, ms, status, faults } of requests) {
    if (operation === null) continue
    times.set(operation, (times.get(operation) ?? 0) + ms)
    if (faults.length === 0) broken.add(`${operation} ${status}`)
  }
  return operations
    .filter((one) => one.requests > 0)
    .map(({ operation, undocumented, statuses }) => {
      const bad = Object.keys(statuses).filter(
        (status) =>
          broken.has(`${operation} ${status}`) && (status === '500' || undocumented.includes(Number(status))),
      )
      const failure = bad.length === 0 ? null : `It responded with ${bad.join(', ')}.`
      return { name: operation, failure, time: (times.get(operation) ?? 0) / 1000 }
    })
}

function deliveryCase({ id, event, url, status, attempts }: Delivery): TestCase {
  const last = attempts.at(-1)
  const why = last === undefined ? 'no attempt was made' : (last.error ?? `the response was ${last.status}`)
  const time = attempts.reduce((sum, { ms }) => sum + ms, 0) / 1000
  const isLost = status === 'failed' || status === 'disabled'
  return { name: `${event} ${id} to ${url}`, failure: isLost ? `${status}: ${why}` : null, time }
}

function suite(name: string, cases: readonly TestCase[]): string {
  const failures = cases.filter(({ failure }) => failure !== null).length
  const time = cases.reduce((sum, one) => sum + (one.time ?? 0), 0)
  const lines = cases.map((one) => {
    const begin = `    <testcase classname="berth.${escaped(name.replaceAll(' ', '_'))}" name="${escaped(one.name)}" time="${(one.time ?? 0).toFixed(3)}"`
    if (one.failure === null) return `${begin}/>\n`
    return `${begin}><failure message="${escaped(one.failure)}"/></testcase>\n`
  })
  const counts = `tests="${cases.length}" failures="${failures}" errors="0" skipped="0" time="${time.toFixed(3)}"`
  return `  <testsuite name="berth ${name}" ${counts}>\n${lines.join('')}  </testsuite>\n`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

/** Escapes a text for an attribute. Characters that XML 1.0 cannot have (section 2.2) become `�`. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it looks for
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\t\r\n]/g, (character) => `&#${character.charCodeAt(0)};`)
