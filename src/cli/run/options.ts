import { UsageError } from '../../errors.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { ReportOptions } from './report.ts'

/** Options of `run` itself. */
export interface OwnOptions extends ReportOptions {
  readonly keep: boolean
  /** Whether processes of the command may outlive it. */
  readonly leave: boolean
  /** The time that the command has, as it was given, and in milliseconds; null for no limit. */
  readonly timeout: string
  readonly timeoutMs: number | null
}

/**
 * Separates the options of `run` itself from those of `serve`.
 *
 * @param flags by name, as they were given
 * @throws UsageError for a value that is not one
 */
export function readFlags(flags: Readonly<Record<string, unknown>>): {
  own: OwnOptions
  serve: Record<string, unknown>
} {
  const {
    keep,
    leave,
    report,
    coverage,
    'coverage-min': coverageMin,
    junit,
    strict,
    timeout,
    ...serve
  } = flags
  const own: OwnOptions = {
    keep: keep === true,
    leave: leave === true,
    report: report === false ? false : textOf(report),
    coverage: textOf(coverage),
    coverageMin: percentOf(textOf(coverageMin)),
    junit: textOf(junit),
    strict: strict === true,
    timeout: textOf(timeout) ?? '',
    timeoutMs: durationOf(textOf(timeout)),
  }
  return { own, serve }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function percentOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const percent = Number(given.replace(/%$/, ''))
  if (given.trim() !== '' && percent >= 0 && percent <= 100) return percent
  throw new UsageError(`--coverage-min: expected a percentage from 0 to 100, got ${JSON.stringify(given)}.`)
}

function durationOf(given: string | undefined): number | null {
  if (given === undefined) return null
  const ms = parseDuration(given)
  if (ms !== null && ms > 0) return ms
  throw new UsageError(`--timeout: expected a duration such as 30s, 10m or 1h, got ${JSON.stringify(given)}.`)
}
