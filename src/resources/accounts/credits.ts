/**
 * Credits are counted in whole units: a second at a thousandth of a credit an hour is one. Sums are
 * exact; a credit is a fraction only where it is shown.
 */
export const UNITS_PER_CREDIT = 3_600_000

/** The smallest part of a credit that a price or a cap can have. */
export const CREDIT_STEP = 0.001

/** Credits, of at most three decimals, as units. */
export const toUnits = (credits: number): number => Math.round(credits * UNITS_PER_CREDIT)

/** Units as credits, to nine decimals: a unit is a little more than a fourth of a millionth. */
export const toCredits = (units: number): number => Math.round((units / UNITS_PER_CREDIT) * 1e9) / 1e9

/** Credits an hour, of at most three decimals, as units a second. */
export const unitsPerSecond = (creditsPerHour: number): number => Math.round(creditsPerHour / CREDIT_STEP)
