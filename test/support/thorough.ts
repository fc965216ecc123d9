/**
 * Whether what is tried at random, or takes minutes, is tried as often as it pays: in CI, and by `scripts/test --all`.
 * Elsewhere as often as finds what is broken at a glance.
 */
export const thorough = Boolean(process.env.CI || process.env.BERTH_TEST_THOROUGH)

/** Whether tests also run in combinations in which nothing of what they test differs: by `scripts/test --all` alone. */
export const everyCombination = Boolean(process.env.BERTH_TEST_THOROUGH)
