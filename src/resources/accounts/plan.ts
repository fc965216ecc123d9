import type { Limits } from '../../compute/driver.ts'
import { StartupError } from '../../errors.ts'
import { CREDIT_STEP } from './credits.ts'
import { fromGb, TIER_PROCESSES, TIERS, type TierName } from './tiers.ts'

/** A value for each tier. */
type PerTier = Readonly<Record<TierName, number>>

/** What an account may have and what it pays. The names are those of the control API and the config file. */
export interface Plan {
  /** Tiers that can be provisioned. */
  readonly tiers: readonly TierName[]
  /** Servers at a time. */
  readonly servers: number
  /** Projects of one server. */
  readonly projects: PerTier
  /** Decimal gigabytes of a workspace. */
  readonly storage_gb: PerTier
  /** Processor cores. */
  readonly cpus: PerTier
  /** Binary gigabytes. */
  readonly memory_gib: PerTier
  /** Credits for an hour of running or building. */
  readonly credits_per_hour: PerTier
  readonly credits_per_task: number
  readonly credits_per_build: number
  /** Credits of a calendar month, where the account has no budget cap of its own. */
  readonly monthly_cap: number
}

/** A part of a plan; what is left out stays as it is in the plan it is laid over. */
export type PlanOverrides = {
  readonly [Key in keyof Plan]?: Plan[Key] extends PerTier ? Partial<PerTier> : Plan[Key]
}

/** The plan of an account that nothing else was said about. */
export const DEFAULT_PLAN: Plan = {
  tiers: TIERS,
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

/** The most that a budget cap can be, in credits: sums of units stay whole numbers far beyond it. */
export const LARGEST_CAP = 100_000_000

/** What a number of a plan must be. */
interface Bounds {
  least: number
  most: number
  /** 1 for whole numbers; without it, any. */
  step?: number
}

const CREDITS: Bounds = { least: 0, most: 1_000_000, step: CREDIT_STEP }
const CAP: Bounds = { least: 0, most: LARGEST_CAP, step: CREDIT_STEP }

const NUMBERS: Readonly<Record<string, Bounds>> = {
  servers: { least: 0, most: 100_000, step: 1 },
  credits_per_task: CREDITS,
  credits_per_build: CREDITS,
  monthly_cap: CAP,
}

const NUMBERS_PER_TIER: Readonly<Record<string, Bounds>> = {
  projects: { least: 0, most: 10_000, step: 1 },
  storage_gb: { least: 0.001, most: 1_000_000 },
  cpus: { least: 0.01, most: 1_024 },
  memory_gib: { least: 0.0625, most: 65_536 },
  credits_per_hour: CREDITS,
}

/**
 * Reads a part of a plan that somebody gave: closed, every number within its bounds.
 *
 * @throws Error with what was expected, to stand behind "expected"
 */
export function parsePlan(value: unknown): PlanOverrides {
  const given = objectOf(value, 'an object with fields of a plan')
  for (const [name, one] of Object.entries(given)) {
    if (name === 'tiers') checkTiers(one)
    else if (Object.hasOwn(NUMBERS, name)) checkNumber(name, one, NUMBERS[name])
    else if (Object.hasOwn(NUMBERS_PER_TIER, name)) {
      for (const [tier, number] of Object.entries(objectOf(one, `"${name}" to be an object by tier`))) {
        if (!isTier(tier))
          throw new Error(`"${name}" to have no field but ${TIERS.join(', ')}, got "${tier}"`)
        checkNumber(`${name}.${tier}`, number, NUMBERS_PER_TIER[name])
      }
    } else throw new Error(`no field but ${Object.keys(DEFAULT_PLAN).join(', ')}, got "${name}"`)
  }
  return given as PlanOverrides
}

/** The shape of a part of a plan, as JSON Schema; that credits have at most three decimals it does not say. */
export function planShape(): object {
  const number = ({ least, most, step }: Bounds) => ({
    type: step === 1 ? 'integer' : 'number',
    minimum: least,
    maximum: most,
  })
  const perTier = (bounds: Bounds) => ({
    type: 'object',
    properties: Object.fromEntries(TIERS.map((tier) => [tier, number(bounds)])),
    additionalProperties: false,
  })
  const mapped = (bounds: Readonly<Record<string, Bounds>>, shape: (one: Bounds) => object) =>
    Object.entries(bounds).map(([name, one]) => [name, shape(one)])
  return {
    type: 'object',
    properties: {
      tiers: { type: 'array', items: { enum: TIERS }, uniqueItems: true },
      ...Object.fromEntries([...mapped(NUMBERS, number), ...mapped(NUMBERS_PER_TIER, perTier)]),
    },
    additionalProperties: false,
  }
}

/** Reads a budget cap in credits. @throws Error with what was expected */
export function parseCap(value: unknown): number {
  checkNumber('it', value, CAP)
  return value as number
}

/** A plan with some of it replaced. */
export function withOverrides<Base extends PlanOverrides>(base: Base, overrides: PlanOverrides): Base {
  const merged: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(overrides)) {
    const before = merged[name]
    merged[name] =
      Object.hasOwn(NUMBERS_PER_TIER, name) && typeof before === 'object'
        ? { ...before, ...(value as object) }
        : value
  }
  return merged as Base
}

/** The plan of an instance, as its configuration has it. @throws StartupError where that is no plan */
export function instancePlan(configured: unknown): Plan {
  if (configured === null) return DEFAULT_PLAN
  try {
    return withOverrides(DEFAULT_PLAN, parsePlan(configured))
  } catch (error) {
    const expected = error instanceof Error ? error.message : String(error)
    throw new StartupError(
      `The configured plan is none: expected ${expected}. Correct --plan, BERTH_PLAN or "plan" in the config file.`,
    )
  }
}

/** What the sandbox of a server of this tier may use. */
export const limitsOf = (plan: Plan, tier: TierName): Limits => ({
  cpus: plan.cpus[tier],
  memoryBytes: Math.floor(plan.memory_gib[tier] * 2 ** 30),
  processes: TIER_PROCESSES[tier],
  storageBytes: fromGb(plan.storage_gb[tier]),
})

const isTier = (value: unknown): boolean => (TIERS as readonly unknown[]).includes(value)

function checkTiers(value: unknown): void {
  if (Array.isArray(value) && value.every(isTier) && new Set(value).size === value.length) return
  throw new Error(`"tiers" to be a list of ${TIERS.join(', ')}, each at most once`)
}

function checkNumber(name: string, value: unknown, bounds: Bounds | undefined): void {
  const { least, most, step } = bounds ?? { least: 0, most: 0 }
  const fits =
    typeof value === 'number' &&
    value >= least &&
    value <= most &&
    (step === undefined || Math.abs(value / step - Math.round(value / step)) < 1e-6)
  if (fits) return
  const kind =
    step === 1 ? 'a whole number' : step === undefined ? 'a number' : 'a number of at most 3 decimals'
  throw new Error(`${name === 'it' ? '' : `"${name}" to be `}${kind} from ${least} to ${most}`)
}

function objectOf(value: unknown, expected: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new Error(expected)
}
