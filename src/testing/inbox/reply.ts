import { badRequest } from '../../errors.ts'

/** How long an answer may be put off, in physical milliseconds. */
const LONGEST_DELAY_MS = 60_000

/** How whoever posts to an inbox wants to be answered. */
export interface Reply {
  /** The first attempt gets the first status, the second one the second; the last one stays. */
  statuses: readonly [number, ...number[]]
  delayMs: number
}

/**
 * Reads `respond` and `delay_ms`; whatever else the query says is the sender's own business.
 *
 * @throws BerthError 400
 */
export function readReply(query: URLSearchParams): Reply {
  const [first = 200, ...more] = (query.get('respond') ?? '200').split(',').map((status) => {
    if (/^[2-5]\d\d$/.test(status.trim())) return Number(status)
    throw badRequest(
      `"respond" in the query: expected a status from 200 to 599, or several with commas between them, got ${JSON.stringify(status)}.`,
    )
  })
  const delay = query.get('delay_ms') ?? '0'
  const delayMs = /^\d{1,6}$/.test(delay) ? Number(delay) : Number.NaN
  if (!(delayMs <= LONGEST_DELAY_MS)) {
    throw badRequest(
      `"delay_ms" in the query: expected a whole number from 0 to ${LONGEST_DELAY_MS}, got ${JSON.stringify(delay)}.`,
    )
  }
  return { statuses: [first, ...more], delayMs }
}

/** The status for an attempt. @param before how many came before it; asked only where that matters */
export const statusOf = ({ statuses }: Reply, before: () => number): number =>
  statuses.length === 1 ? statuses[0] : (statuses[Math.min(before(), statuses.length - 1)] ?? statuses[0])

/** Resolves after so many physical milliseconds, or as soon as one of the signals fires. */
export async function delayed(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  if (ms === 0) return
  const ended = AbortSignal.any([...signals])
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  if (ended.aborted) resolve()
  ended.addEventListener('abort', () => resolve())
  await promise
  clearTimeout(timer)
}
