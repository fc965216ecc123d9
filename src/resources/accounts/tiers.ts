import { oneOf } from '../../contract/schema.ts'

/** The sizes of servers, smallest first. */
export const TIERS = ['small', 'medium', 'large'] as const

/** The size of a server. */
export type TierName = (typeof TIERS)[number]

/** The schema of a size. */
export const TierName = oneOf([...TIERS], { $id: 'Tier', description: 'Size of a server.' })

/** Largest number of processes and threads of a server. */
export const TIER_PROCESSES: Readonly<Record<TierName, number>> = { small: 1024, medium: 2048, large: 4096 }
