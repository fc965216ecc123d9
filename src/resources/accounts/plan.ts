import type { Limits } from '../../compute/compute.ts'
import type { AccountPlan, PlanOverrides } from './model.ts'
import { TIER_PROCESSES, TIERS, type TierName } from './tiers.ts'

/** The default plan of an instance. */
export const DEFAULT_PLAN: AccountPlan = {
  tiers: [...TIERS],
  servers: 50,
  projects: { small: 3, medium: 10, large: 25 },
  storage_gb: { small: 5, medium: 20, large: 80 },
  cpus: { small: 1, medium: 2, large: 4 },
  memory_gib: { small: 1, medium: 4, large: 8 },
  credits_per_hour: { small: 1, medium: 2, large: 4 },
  credits_per_task: 0.1,
  credits_per_build: 0.5,
  monthly_cap: 1_000,
}

/** Returns a plan with some fields replaced. */
export function withOverrides<Base extends PlanOverrides>(base: Base, overrides: PlanOverrides): Base {
  const merged: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(overrides)) {
    const before = merged[name]
    const isPerTier = typeof before === 'object' && !Array.isArray(before)
    merged[name] = isPerTier ? { ...before, ...(value as object) } : value
  }
  return merged as Base
}

/** Returns the limits of a server's sandbox by its tier. */
export const limitsOf = (plan: AccountPlan, tier: TierName): Limits => ({
  cpus: plan.cpus[tier],
  memoryBytes: Math.floor(plan.memory_gib[tier] * 2 ** 30),
  processes: TIER_PROCESSES[tier],
  storageBytes: fromGb(plan.storage_gb[tier]),
})

const GB = 1e9

/** Converts bytes to the decimal gigabytes of `storageUsedGb`. */
export const toGb = (bytes: number): number => bytes / GB

/** Converts decimal gigabytes to bytes. */
const fromGb = (gb: number): number => Math.round(gb * GB)
