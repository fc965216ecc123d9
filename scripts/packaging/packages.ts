import type { Release } from './release.ts'

/** Builds the packages of a release, each in its own directory or file of `release.out`. */
export async function packageAll(_release: Release): Promise<void> {}
