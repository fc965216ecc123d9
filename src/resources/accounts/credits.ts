/**
 * Returns the calendar month (UTC) of a time, such as `2030-01`.
 *
 * @param ms milliseconds since 1970
 */
export function monthOf(ms: number): string {
  const date = new Date(ms)
  return `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, '0')}`
}

/**
 * Returns the end of the month of a time: the first moment of the next month.
 *
 * @param ms milliseconds since 1970
 */
export function monthEnd(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}

/**
 * Units in a credit. A second at a price of 0.001 credits an hour costs one unit, so sums of units are exact.
 * Fractions of credits exist only in the API.
 */
const UNITS_PER_CREDIT = 3_600_000

/** The smallest step of a price or a cap, in credits. */
export const CREDIT_STEP = 0.001

/** Converts credits, of at most three decimals, to units. */
export const toUnits = (credits: number): number => Math.round(credits * UNITS_PER_CREDIT)

/** Converts units to credits, rounded to nine decimals: a unit is about 0.28 millionths of a credit. */
export const toCredits = (units: number): number => Math.round((units / UNITS_PER_CREDIT) * 1e9) / 1e9

/** Converts credits an hour, of at most three decimals, to units a second. */
export const unitsPerSecond = (creditsPerHour: number): number => Math.round(creditsPerHour / CREDIT_STEP)
