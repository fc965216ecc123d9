/**
 * Whether what is tried at random, or once more where little differs, is tried as often as it pays: in CI, and by
 * `scripts/test --all`. Elsewhere as often as finds what is broken at a glance.
 */
export const thorough = Boolean(process.env.CI || process.env.BERTH_TEST_THOROUGH)
