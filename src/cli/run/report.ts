import { appendFileSync, closeSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { SelectedDriver } from '../../compute/compute.ts'
import { StartupError } from '../../errors.ts'
import { machineNow, toIso } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { makeTemporary } from '../../storage/data-directory.ts'
import { isBeingWritten, ReportDirectory } from '../../testing/report/directory.ts'
import { loadRunRecord, type RunRecord } from '../../testing/testing.ts'
import { type ProcessContext, printLog } from '../process-context.ts'
import { coverageText } from '../report/coverage.ts'
import { CI_DIRECTORY, listReports, reportsDirectory } from '../report/find.ts'
import { FINDING_KINDS, findingText, lastRefused, refusedText } from '../report/findings.ts'
import type { JudgedReport, Verdict } from '../report/finish.ts'

/** Reports of failed runs that are kept in the state directory. */
const KEPT = 10

/** Findings of a kind that are printed. @bound reader */
const MOST_PRINTED = 10

/** What a person asked for. */
export interface ReportOptions {
  /** Directory of the report; false for none, undefined for the usual place. */
  readonly report: string | false | undefined
  readonly coverage: string | undefined
  /** Least percentage of operations with a success. */
  readonly coverageMin: number | undefined
  readonly junit: string | undefined
  readonly strict: boolean
}

/** The instance and the command of a run that has ended. */
interface EndedRun {
  readonly command: readonly string[]
  readonly exitCode: number
  readonly baseUrl: string
}

/** Where a report is written. */
interface Place {
  readonly path: string
  /** When it stays there: always, if the run fails, or never. */
  readonly stays: 'always' | 'failed' | 'never'
}

/** The report of a run: where it is written, and what becomes of it. */
export class RunReport {
  /** Records what happens in the instance. */
  readonly record: RunRecord
  readonly #directory: ReportDirectory
  readonly #options: ReportOptions
  readonly #context: ProcessContext
  #place: Place
  readonly #beganAt = toIso(machineNow())
  #selected: SelectedDriver | null = null

  private constructor(
    place: Place,
    { directory, record }: { directory: ReportDirectory; record: RunRecord },
    options: ReportOptions,
    context: ProcessContext,
  ) {
    this.#place = place
    this.#directory = directory
    this.record = record
    this.#options = options
    this.#context = context
  }

  /**
   * Begins a report. Returns null if none is wanted, or there is no place for one that nobody asked for.
   *
   * @throws StartupError if a file that was asked for cannot be written
   */
  static async begin(options: ReportOptions, context: ProcessContext): Promise<RunReport | null> {
    const { env, cwd } = context
    if (options.coverage !== undefined) touch(resolve(cwd, options.coverage), 'The coverage', '--coverage')
    if (options.junit !== undefined) touch(resolve(cwd, options.junit), 'The report for JUnit', '--junit')
    const { RunRecord } = await loadRunRecord()
    const at = (path: string, stays: Place['stays']): RunReport => {
      const directory = ReportDirectory.take(path)
      const record = new RunRecord(directory, stays === 'always')
      return new RunReport({ path, stays }, { directory, record }, options, context)
    }
    if (typeof options.report === 'string') return at(resolve(cwd, options.report), 'always')
    if (options.report !== false) {
      try {
        if (isCi(env)) return at(join(cwd, CI_DIRECTORY), 'always')
      } catch (error) {
        // Nobody asked for it, so it does not fail the run.
        printLog(`berth: ${messageOf(error)}\n`)
      }
      try {
        const reports = reportsDirectory(env)
        if (reports !== null) return at(join(reports, `${stampOf(machineNow())}-${process.pid}`), 'failed')
      } catch {
        // There is no writable home: the run goes without.
      }
    }
    const isNeeded =
      options.strict ||
      options.coverageMin !== undefined ||
      [options.coverage, options.junit, env.GITHUB_STEP_SUMMARY].some((file) => file !== undefined)
    return isNeeded ? at(makeTemporary(tmpdir(), 'berth-report-'), 'never') : null
  }

  /**
   * Writes the report, or removes it if it is not wanted, and prints what it says about the run.
   *
   * @returns the exit code: 1 if the command's is 0, and coverage or findings fail the run; and the page of a report that is kept
   */
  async end({ command, exitCode, baseUrl }: EndedRun): Promise<{ code: number; page: string | null }> {
    const { coverage, junit } = this.#options
    const { env, cwd } = this.#context
    if (!this.#isNeeded(exitCode)) {
      this.abandon()
      return { code: exitCode, page: null }
    }
    await this.record.flush()
    const summaryFile = env.GITHUB_STEP_SUMMARY ?? ''
    try {
      const { finishReport } = await import('../report/finish.ts')
      const report = await finishReport(this.#directory, {
        run: {
          command: command.map((word) => this.record.mask(word)),
          exit_code: exitCode,
          began_at: this.#beganAt,
          ended_at: toIso(machineNow()),
        },
        baseUrl,
        record: this.record,
        doctor: () => examined(this.#context, this.#selected),
        coverage: coverage === undefined ? null : resolve(cwd, coverage),
        junit: junit === undefined ? null : resolve(cwd, junit),
        stays: (outcome) => this.#stays(outcome),
        judge: (finished) => this.#judge(exitCode, finished),
      })
      if (coverage !== undefined && report.problems.length === 0)
        printLog(`berth: ${coverageText(report.coverage)}; ${resolve(cwd, coverage)} has the details\n`)
      for (const problem of report.problems) printLog(`berth: ${problem}\n`)
      for (const line of report.verdict.lines) printLog(`${line}\n`)
      if (summaryFile !== '') appendFileSync(summaryFile, `${report.summary}\n`)
      if (this.record.failure !== null)
        printLog(
          `berth: the report is incomplete: ${this.record.failure}. Make room, or name another directory with --report.\n`,
        )
      if (report.page === null) this.abandon()
      else if (this.#place.stays === 'failed') removeOld(dirname(this.#place.path))
      const code = report.verdict.code || (report.problems.length > 0 ? 1 : 0)
      return { code, page: report.page }
    } catch (error) {
      // Nothing must be left behind, and the command's failure counts.
      if (this.#place.stays !== 'always') this.abandon()
      printLog(`berth: ${messageOf(error)}\n`)
      return { code: exitCode || 1, page: null }
    }
  }

  /**
   * Takes the exit code of the command, before the instance is stopped: of a run at a desk that passed, or that a person has interrupted,
   * nothing is kept. What enforces limits can only be found out while the instance runs.
   */
  async commandEnded(exitCode: number, isInterrupted: boolean, selected: SelectedDriver): Promise<void> {
    if (isInterrupted && this.#place.stays === 'failed') this.#place = { ...this.#place, stays: 'never' }
    if (!this.#isNeeded(exitCode)) this.record.drop()
    if (!this.#stays(exitCode)) return
    const enforced = await selected.enforced().catch(() => null)
    if (enforced !== null) this.#selected = { ...selected, enforced: async () => enforced }
  }

  /** Reports whether the report of a run with this exit code stays. */
  #stays(exitCode: number): boolean {
    return this.#place.stays === 'always' || (this.#place.stays === 'failed' && exitCode !== 0)
  }

  /** Reports whether anything is to be made of what was recorded. */
  #isNeeded(exitCode: number): boolean {
    const { coverage, coverageMin, junit, strict } = this.#options
    if (this.#stays(exitCode)) return true
    const files = [coverage, junit, this.#context.env.GITHUB_STEP_SUMMARY]
    return strict || coverageMin !== undefined || files.some((file) => file !== undefined)
  }

  /** Removes the report of a run that needs none. */
  abandon(): void {
    if (this.#place.stays !== 'always') this.#directory.discard()
  }

  /** Says whether coverage and findings fail the run, and what they are if it has failed. */
  #judge(exitCode: number, { recorded, coverage, findings }: JudgedReport): Verdict {
    const { coverageMin, strict } = this.#options
    const lines: string[] = []
    let code = exitCode
    const { percent, operations } = coverage.summary.succeeded
    if (coverageMin !== undefined && percent < coverageMin) {
      code ||= 1
      const all = coverage.summary.operations.documented
      lines.push(
        `berth: ${operations} of ${all} operations had a success, which is ${percent} %: less than --coverage-min ${coverageMin}.`,
      )
    }
    if (strict && findings.length > 0) code ||= 1
    if (code === 0) return { code, lines }
    const refused = lastRefused(recorded.requests)
    if (refused.length > 0)
      lines.push('berth: the last refused requests:', ...refused.map((one) => `  ${refusedText(one)}`))
    for (const kind of Object.keys(FINDING_KINDS) as (keyof typeof FINDING_KINDS)[]) {
      const found = findings.filter((finding) => finding.kind === kind)
      if (found.length === 0) continue
      lines.push(`berth: ${FINDING_KINDS[kind]}${strict ? ', which --strict refuses' : ''}:`)
      lines.push(...found.slice(0, MOST_PRINTED).map((finding) => `  ${findingText(finding)}`))
      if (found.length > MOST_PRINTED) lines.push(`  and ${found.length - MOST_PRINTED} more`)
    }
    return { code, lines }
  }
}

/** Returns what this machine offers, or why that is not known: the report is written anyway. The instance must be over. */
async function examined(context: ProcessContext, selected: SelectedDriver | null): Promise<object> {
  try {
    const { examine } = await import('../doctor.ts')
    return await examine({}, context, { purpose: 'run', selected })
  } catch (error) {
    return { error: messageOf(error) }
  }
}

/** Reports whether this runs on a CI system, as such set a variable. */
const isCi = ({ CI = '' }: ProcessContext['env']): boolean => !['', '0', 'false'].includes(CI)

/** Returns a time as the beginning of a name that sorts by it: `20300131-120000`. */
const stampOf = (at: number): string => toIso(at).slice(0, 19).replace(/[-:]/g, '').replace('T', '-')

/** Removes all but the newest reports of runs that have ended. */
function removeOld(directory: string): void {
  const ended = listReports(directory).filter((path) => !isBeingWritten(path))
  for (const path of ended.slice(0, -KEPT)) rmSync(path, { recursive: true, force: true })
}

/**
 * Checks that a file can be written, because a failure should occur before the command runs.
 *
 * @throws StartupError
 */
function touch(path: string, what: string, option: string): void {
  try {
    closeSync(openSync(path, 'a'))
  } catch (error) {
    throw new StartupError(
      `${what} cannot be written: ${messageOf(error)}. Name another file with ${option}.`,
    )
  }
}
