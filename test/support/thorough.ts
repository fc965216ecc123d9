/**
 * Whether what is tried at random, or takes minutes, is tried as often as it pays: in CI, and by `scripts/test --all`.
 * Elsewhere as often as finds what is broken at a glance.
 */
export const thorough = Boolean(process.env.CI || process.env.BERTH_TEST_THOROUGH)

/**
 * Returns how often a test tries what may go wrong at any moment, by what runs it. Each run tries other moments, so what few
 * rounds of one miss the next ones find, and CI runs for every change.
 */
export function rounds({
  usually,
  inCi,
  withAll,
}: {
  usually: number
  inCi: number
  withAll: number
}): number {
  if (everyCombination) return withAll
  return thorough ? inCi : usually
}

/** Whether tests also run in combinations in which nothing of what they test differs: by `scripts/test --all` alone. */
export const everyCombination = Boolean(process.env.BERTH_TEST_THOROUGH)
