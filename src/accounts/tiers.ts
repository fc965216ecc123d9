import type { Limits } from '../compute/driver.ts'

const GB = 1e9
const GIB = 2 ** 30

/** What a server of each tier may use. Storage counts in decimal gigabytes, memory in binary ones. */
export const TIER_LIMITS = {
  small: { cpus: 1, memoryBytes: GIB, processes: 1024, storageBytes: 5 * GB },
  medium: { cpus: 2, memoryBytes: 4 * GIB, processes: 2048, storageBytes: 20 * GB },
  large: { cpus: 4, memoryBytes: 8 * GIB, processes: 4096, storageBytes: 80 * GB },
} as const satisfies Record<string, Limits>

/** Size of a server. */
export type TierName = keyof typeof TIER_LIMITS

/** Bytes as the decimal gigabytes of `storageUsedGb`. */
export const toGb = (bytes: number): number => bytes / GB
