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
