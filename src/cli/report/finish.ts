import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../runtime/error-info.ts'
import { entriesOf, ifPresent } from '../../runtime/if-present.ts'
import { HAR_END, harBegin, harEntry } from '../../testing/journal/har.ts'
import { REPORT, type ReportDirectory } from '../../testing/report/directory.ts'
import type { RunRecord } from '../../testing/testing.ts'
import { versionInfo } from '../version.ts'
import {
  type CoverageReport,
  countResponses,
  coverageReport,
  type DocumentedOperation,
  documentedOperations,
  mergeResponses,
  type ObservedResponses,
} from './coverage.ts'
import { findingsOf, type RunFinding } from './findings.ts'
import { junitReport } from './junit.ts'
import { reportPage } from './page.ts'
import { type Recorded, type RunOutcome, readRecorded } from './read.ts'
import { runSummaryOf } from './summary.ts'

/** What a run is judged by. */
export interface JudgedReport {
  readonly recorded: Recorded
  readonly coverage: CoverageReport
  readonly findings: readonly RunFinding[]
}

/** Whether a run has failed. */
export interface Verdict {
  readonly code: number
  /** Lines for a person. */
  readonly lines: readonly string[]
}

/** What a finished report is made of. */
interface FinishOptions {
  readonly run: RunOutcome
  /** Of the instance, which is over. */
  readonly baseUrl: string
  readonly record: RunRecord
  /** Returns what the machine offers. */
  doctor(): Promise<object>
  /** Paths of further files; null for none. */
  readonly coverage: string | null
  readonly junit: string | null
  judge(report: JudgedReport): Verdict
  /** Reports whether the report stays in its directory, by the exit code of the run. */
  stays(code: number): boolean
}

/** A report that is finished. */
interface FinishedReport extends JudgedReport {
  readonly verdict: Verdict
  /** In Markdown. */
  readonly summary: string
  /** Why further files could not be written. */
  readonly problems: readonly string[]
  /** Path of the page; null if the report does not stay. */
  readonly page: string | null
}

/**
 * Finishes the report of a run: judges it by everything that was recorded, of all runs that share the directory, and writes the files
 * that are made of it.
 *
 * @throws the system's error if a file cannot be written
 */
export const finishReport = (directory: ReportDirectory, options: FinishOptions): Promise<FinishedReport> =>
  directory.finish(() => finish(directory, options))

async function finish(directory: ReportDirectory, options: FinishOptions): Promise<FinishedReport> {
  const { path } = directory
  const { run, record, junit } = options
  maskAgain(path, record)
  const recorded = readRecorded(path)
  const operations = await operationsOfApi()
  const reportOf = (seen: ObservedResponses, began = run.began_at): CoverageReport =>
    coverageReport(seen, operations, { ...run, began_at: began })
  const seen = countResponses(recorded.requests)
  const coverage = reportOf(seen)
  const judged = { recorded, coverage, findings: findingsOf(recorded, coverage) }
  const verdict = options.judge(judged)
  const outcome = { ...run, exit_code: verdict.code }
  directory.append(REPORT.findings, JSON.stringify({ kind: 'run', run: outcome }))
  directory.flush()
  const runs = [...recorded.runs, outcome]
  const summary = runSummaryOf(runs, judged.recorded, coverage, judged.findings)
  const cases = junitReport(recorded, coverage, judged.findings)
  const problems: string[] = []
  if (options.coverage !== null) {
    // Of a run that has ended since this one began.
    const other = readCoverage(options.coverage)
    // The recorded requests may be of several runs, which each write the file.
    const own = countResponses(record.responses)
    const isBeside = other !== null && other.ended_at >= run.began_at
    const whole = isBeside
      ? reportOf(mergeResponses(own, other), [run.began_at, other.began_at].sort()[0])
      : reportOf(own)
    judged.coverage = whole
    problems.push(
      ...written(options.coverage, `${JSON.stringify(whole, null, 2)}\n`, 'The coverage', '--coverage'),
    )
  }
  if (junit !== null) problems.push(...written(junit, cases, 'The report for JUnit', '--junit'))
  if (!options.stays(verdict.code)) return { ...judged, verdict, summary, problems, page: null }
  const page = join(path, REPORT.page)
  const put = (name: string, text: string): void => writeFileSync(join(path, name), text, { mode: 0o600 })
  put(REPORT.deliveries, linesOf(recorded.deliveries))
  put(REPORT.events, linesOf(recorded.events))
  put(REPORT.coverage, `${JSON.stringify(coverage, null, 2)}\n`)
  put(REPORT.summary, summary)
  put(REPORT.junit, cases)
  put(REPORT.doctor, `${JSON.stringify(record.remask(await options.doctor()), null, 2)}\n`)
  writeHar(join(path, REPORT.har), recorded, options.baseUrl, (text) => record.mask(text))
  put(
    REPORT.page,
    await reportPage(path, { recorded, runs, findings: judged.findings, baseUrl: options.baseUrl }),
  )
  return { ...judged, verdict, summary, problems, page }
}

/** Makes the page and the files of a report whose run was killed, of what it has recorded. */
export async function finishKilled(path: string): Promise<void> {
  const recorded = readRecorded(path)
  const { runs } = recorded
  const run = { command: [], exit_code: 0, began_at: recorded.requests[0]?.at ?? '', ended_at: '' }
  const coverage = coverageReport(countResponses(recorded.requests), await operationsOfApi(), run)
  const findings = findingsOf(recorded, coverage)
  // The address is over with the run.
  const baseUrl = 'http://127.0.0.1'
  const put = (name: string, text: string): void => writeFileSync(join(path, name), text, { mode: 0o600 })
  put(REPORT.coverage, `${JSON.stringify(coverage, null, 2)}\n`)
  put(REPORT.summary, runSummaryOf(runs, recorded, coverage, findings))
  put(REPORT.junit, junitReport(recorded, coverage, findings))
  writeHar(join(path, REPORT.har), recorded, baseUrl)
  put(REPORT.page, await reportPage(path, { recorded, runs, findings, baseUrl }))
}

/** The operations of the API's OpenAPI document, as JSON. An executable is built with them: to describe all routes takes 0.1 s. */
declare const BERTH_OPERATIONS: string | undefined

async function operationsOfApi(): Promise<readonly DocumentedOperation[]> {
  if (typeof BERTH_OPERATIONS === 'string') return JSON.parse(BERTH_OPERATIONS)
  const { describeApi } = await import('../../instance/describe.ts')
  return documentedOperations(await describeApi())
}

const linesOf = (values: readonly unknown[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

/** Writes the requests as an HTTP archive, entry by entry: they may be hundreds of megabytes. */
function writeHar(
  path: string,
  { requests }: Recorded,
  baseUrl: string,
  mask?: (text: string) => string,
): void {
  const file = openSync(path, 'w', 0o600)
  try {
    writeSync(file, harBegin(versionInfo().version))
    let text = ''
    for (const [index, request] of requests.entries()) {
      text += `${index === 0 ? '' : ','}\n${JSON.stringify(harEntry(request, baseUrl, mask))}`
      if (text.length < FULL) continue
      writeSync(file, text)
      text = ''
    }
    writeSync(file, text + HAR_END)
  } finally {
    closeSync(file)
  }
}

/** Characters that are written at once. */
const FULL = 1024 * 1024

/**
 * Masks the secrets that were learned after a line was written. Most lines have none, and stay as they are.
 */
function maskAgain(path: string, record: RunRecord): void {
  const logs = entriesOf(join(path, REPORT.logs)).map(({ name }) => join(REPORT.logs, name))
  const transcripts = entriesOf(join(path, REPORT.transcripts)).map(({ name }) =>
    join(REPORT.transcripts, name),
  )
  const { journal, events, deliveries, objects, findings } = REPORT
  for (const name of [journal, events, deliveries, objects, findings, ...transcripts, ...logs]) {
    const file = join(path, name)
    const text = ifPresent(() => readFileSync(file, 'utf8'))
    if (text === null || record.mask(text) === text) continue
    const isLog = logs.includes(name)
    const lines = text.split('\n').map((line) => {
      if (record.mask(line) === line) return line
      return isLog ? record.mask(line) : remaskLine(line, record)
    })
    writeFileSync(file, lines.join('\n'), { mode: 0o600 })
  }
}

/** Masks the texts in a line of JSON; drops one that a killed run has not written completely. */
function remaskLine(line: string, record: RunRecord): string {
  try {
    return JSON.stringify(record.remask(JSON.parse(line)))
  } catch {
    return ''
  }
}

/** Reads a coverage; returns null if the file has none. */
function readCoverage(path: string): CoverageReport | null {
  try {
    const { operations, unmatched, ended_at } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as Partial<CoverageReport>
    const isOne = Array.isArray(operations) && typeof unmatched === 'object' && typeof ended_at === 'string'
    return isOne ? (JSON.parse(readFileSync(path, 'utf8')) as CoverageReport) : null
  } catch {
    return null
  }
}

/** Writes a file. Returns why it cannot be written, if so. */
function written(path: string, text: string, what: string, option: string): string[] {
  try {
    writeFileSync(path, text)
    return []
  } catch (error) {
    return [`${what} cannot be written: ${messageOf(error)}. Name another file with ${option}.`]
  }
}
