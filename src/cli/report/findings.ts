import type { Fault, WholeEntry } from '../../testing/testing.ts'
import type { CoverageReport } from './coverage.ts'
import type { Recorded } from './read.ts'

/** Kinds of findings, with what they are called in plural. */
export const FINDING_KINDS = {
  near_miss: 'near misses',
  undocumented: 'undocumented responses',
  unapplied_fault: 'faults that never applied',
  expired_wait: 'waits that timed out',
} as const

/** Something that a test hardly meant. With `--strict` it fails the run. */
export interface RunFinding {
  readonly kind: keyof typeof FINDING_KINDS
  /** What it is about, such as an operation. */
  readonly name: string
  readonly message: string
  /** How often it occurred. */
  readonly count: number
}

/** Returns what a run's tests hardly meant, each once. */
export function findingsOf(recorded: Recorded, coverage: CoverageReport): RunFinding[] {
  return [
    ...nearMissesOf(recorded.requests),
    ...undocumentedOf(recorded.requests, coverage),
    ...recorded.unappliedFaults.map(
      (fault): RunFinding => ({
        kind: 'unapplied_fault',
        name: fault.id,
        message: `${effectOf(fault)}, for ${JSON.stringify(fault.match)}: ${fault.matched === 0 ? 'no request matched it' : `${fault.matched} matched it, and none was hit`}.`,
        count: 1,
      }),
    ),
    ...recorded.expiredWaits.map((query): RunFinding => {
      const { timeout_ms: timeout = 30_000, ...wanted } = query
      const what = Object.entries(wanted).map(([name, value]) => `${name}=${value}`)
      return {
        kind: 'expired_wait',
        name: what.join(' '),
        message: `It was not reached within ${timeout} ms.`,
        count: 1,
      }
    }),
  ]
}

/** The effect of a fault in a word or two. */
const effectOf = ({ effect }: Fault): string => {
  const [[name, value] = ['', '']] = Object.entries(effect)
  return `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`
}

/** Returns the near misses of requests by others than berth's own clients. */
function nearMissesOf(requests: readonly WholeEntry[]): RunFinding[] {
  const found = new Map<string, RunFinding>()
  for (const { client, method, path, operation, near_misses: misses } of requests) {
    if (client !== null) continue
    for (const { kind, at, message } of misses) {
      const name = operation ?? `${method} ${path.split('?', 1)[0]}`
      const where = kind === 'path' || kind === 'method' ? '' : `${kind} ${JSON.stringify(at)}: `
      add(found, { kind: 'near_miss', name, message: `${where}${message}`, count: 1 })
    }
  }
  return [...found.values()]
}

/** Returns the responses whose statuses the OpenAPI document lacks, but for those of faults. */
function undocumentedOf(requests: readonly WholeEntry[], coverage: CoverageReport): RunFinding[] {
  const undocumented = new Map(coverage.operations.map((one) => [one.operation, new Set(one.undocumented)]))
  const found = new Map<string, RunFinding>()
  for (const { client, operation, status, faults } of requests) {
    if (client !== null || operation === null || faults.length > 0) continue
    if (!undocumented.get(operation)?.has(status)) continue
    const message = `It responded with ${status}, which its documentation lacks.`
    add(found, { kind: 'undocumented', name: operation, message, count: 1 })
  }
  return [...found.values()]
}

function add(found: Map<string, RunFinding>, finding: RunFinding): void {
  const key = JSON.stringify([finding.name, finding.message])
  const known = found.get(key)
  found.set(key, known === undefined ? finding : { ...known, count: known.count + 1 })
}

/** Describes a finding in a line. */
export const findingText = ({ name, message, count }: RunFinding): string =>
  `${name}: ${message}${count === 1 ? '' : ` (${count} times)`}`

/** Requests that are printed after a failure. @bound reader */
const MOST_REFUSED = 5

/** Returns the last requests that were refused, oldest first, but for those of berth's own clients. */
export const lastRefused = (requests: readonly WholeEntry[]): WholeEntry[] =>
  requests
    .filter(({ client, status, aborted }) => client === null && status >= 400 && !aborted)
    .slice(-MOST_REFUSED)

/** Describes a refused request in a line. */
export function refusedText({ method, path, status, said, faults }: WholeEntry): string {
  const by = faults.length === 0 ? '' : ' (a fault applied)'
  return `${method} ${path} → ${status}${by}${said?.message ? `: ${said.message}` : ''}`
}
