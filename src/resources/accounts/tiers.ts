/** The sizes of servers, smallest first. */
export const TIERS = ['small', 'medium', 'large'] as const

/** Size of a server. */
export type TierName = (typeof TIERS)[number]

/** Processes and threads of a server at a time. */
export const TIER_PROCESSES: Readonly<Record<TierName, number>> = { small: 1024, medium: 2048, large: 4096 }

const GB = 1e9

/** Bytes as the decimal gigabytes of `storageUsedGb`. */
export const toGb = (bytes: number): number => bytes / GB

/** Decimal gigabytes as bytes. */
export const fromGb = (gb: number): number => Math.round(gb * GB)
