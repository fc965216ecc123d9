import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { amount, givenAmount, integer, oneOf, worded } from '../../contract/schema.ts'
import { TIERS } from './tiers.ts'

/** Largest budget cap, in credits. Sums of units are exact far beyond it. @bound client */
const LARGEST_CAP = 100_000_000

const closed = <Fields extends TProperties>(fields: Fields, options: object = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })

/** A value for each tier. */
const perTier = <Value extends TSchema>(value: Value, description: string) =>
  closed({ small: value, medium: value, large: value }, { description })

/** Returns the fields of a plan, with a schema for its credits. */
function planFields(credits: typeof amount) {
  const price = (description?: string) =>
    credits({ minimum: 0, maximum: 1_000_000, ...(description ? { description } : {}) })
  return {
    tiers: Type.Array(oneOf([...TIERS]), {
      uniqueItems: true,
      description: 'Tiers that can be provisioned.',
    }),
    servers: integer({ minimum: 0, maximum: 100_000, description: 'Servers at a time.' }),
    projects: perTier(integer({ minimum: 0, maximum: 10_000 }), 'Projects of one server.'),
    storage_gb: perTier(
      Type.Number({ minimum: 0.001, maximum: 1_000_000 }),
      'Decimal gigabytes of a workspace.',
    ),
    cpus: perTier(Type.Number({ minimum: 0.01, maximum: 1_024 }), 'Processor cores.'),
    memory_gib: perTier(Type.Number({ minimum: 0.0625, maximum: 65_536 }), 'Binary gigabytes.'),
    credits_per_hour: perTier(price(), 'Credits for an hour of running or building.'),
    credits_per_task: price('Credits for a task.'),
    credits_per_build: price('Credits for a build.'),
    monthly_cap: credits({
      minimum: 0,
      maximum: LARGEST_CAP,
      description: 'Credits a month, if the account has no budget of its own.',
    }),
  }
}

/** The limits and prices of an account. */
export const AccountPlan = closed(planFields(amount), { $id: 'Plan' })
export type AccountPlan = Static<typeof AccountPlan>

const given = planFields(givenAmount)

/** Fields of a plan that replace those of another plan. Missing ones are unchanged. */
export const PlanOverrides = worded(
  Type.Partial(
    closed({
      ...given,
      projects: Type.Partial(given.projects),
      storage_gb: Type.Partial(given.storage_gb),
      cpus: Type.Partial(given.cpus),
      memory_gib: Type.Partial(given.memory_gib),
      credits_per_hour: Type.Partial(given.credits_per_hour),
    }),
    { $id: 'PlanOverrides', additionalProperties: false },
  ),
  'an object with fields of a plan',
)
export type PlanOverrides = Static<typeof PlanOverrides>

/** Credits that an account may use in a month. */
export const BudgetCap = givenAmount({ minimum: 0, maximum: LARGEST_CAP, description: 'Credits a month.' })

/** Credits that an account has used in a month, with the precision of units. */
export const CreditsUsed = Type.Number({
  minimum: 0,
  maximum: LARGEST_CAP,
  description: 'What the account has used in this month.',
})
