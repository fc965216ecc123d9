/** A server that runs, as far as its price goes. */
export interface Run {
  /** Units of credits for a second. */
  rate: number
  /** The elapsed time at which its second that is not charged yet began. */
  since: number
}

const SECOND_MS = 1_000

/** Whole seconds of a run that are over at `at` and not charged yet. */
export const secondsBy = ({ since }: Run, at: number): number =>
  Math.max(0, Math.floor((at - since) / SECOND_MS))

/** Units that runs have used by `at` beyond what is charged. */
const unitsBy = (runs: readonly Run[], at: number): number =>
  runs.reduce((sum, run) => sum + run.rate * secondsBy(run, at), 0)

/**
 * Charges the seconds of a run that are over at `at`; the rest stays for later.
 *
 * @returns units
 */
export function chargeUntil(run: Run, at: number): number {
  const seconds = secondsBy(run, at)
  run.since += seconds * SECOND_MS
  return seconds * run.rate
}

/** Lets time pass in which a run costs nothing. */
export function pause(run: Run, ms: number): void {
  run.since += ms
}

/**
 * The elapsed time at which runs will have used `units` more: the end of the second that does it.
 *
 * @param from where they are charged up to
 */
export function momentOf(runs: readonly Run[], units: number, from: number): number {
  if (units <= 0) return from
  const together = runs.reduce((sum, { rate }) => sum + rate, 0)
  if (together === 0) return Number.POSITIVE_INFINITY
  // Each run has charged all whole seconds by then, whatever part of one it began with.
  let late = from + (Math.ceil(units / together) + 1) * SECOND_MS
  let early = from
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (unitsBy(runs, middle) >= units) late = middle
    else early = middle
  }
  return late
}
