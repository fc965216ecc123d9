import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { amount, givenAmount, integer, used, worded } from '../../contract/schema.ts'
import { TierName } from './tiers.ts'

/** Largest budget cap, in credits. Sums of units are exact far beyond it. @bound client */
const LARGEST_CAP = 100_000_000

const closed = <Fields extends TProperties>(fields: Fields, options: object = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })

/** A value for each tier. */
const perTier = <Value extends TSchema>(value: Value, options: object) =>
  Type.Object({ small: value, medium: value, large: value }, options)

/** Values for some tiers in place of others. */
const someTiers = <Value extends TSchema>(name: string, value: Value, description: string) =>
  used(
    Type.Partial(closed(perTier(value, {}).properties), { $id: name, additionalProperties: false }),
    description,
  )

const PerTier = perTier(Type.Number(), { $id: 'PerTier' })
const CountPerTier = perTier(integer({ minimum: 0, maximum: 10_000 }), { $id: 'CountPerTier' })

const MEANINGS = {
  projects: 'Projects of one server.',
  storage_gb: 'Decimal gigabytes of a workspace.',
  cpus: 'Processor cores.',
  memory_gib: 'Binary gigabytes.',
  credits_per_hour: 'Credits for an hour of running or building.',
}

/** Returns the fields of a plan that are not by tier, with a schema for its credits. */
function planFields(credits: typeof amount) {
  const price = (description: string) => credits({ minimum: 0, maximum: 1_000_000, description })
  return {
    tiers: Type.Array(TierName, { uniqueItems: true, description: 'Tiers that can be provisioned.' }),
    servers: integer({ minimum: 0, maximum: 100_000, description: 'Servers at a time.' }),
    credits_per_task: price('Credits for a task.'),
    credits_per_build: price('Credits for a build.'),
    monthly_cap: credits({
      minimum: 0,
      maximum: LARGEST_CAP,
      description: 'Credits a month, if the account has no budget of its own.',
    }),
  }
}

const { tiers, servers, ...prices } = planFields(amount)

/** The limits and prices of an account. */
export const AccountPlan = Type.Object(
  {
    tiers,
    servers,
    projects: used(CountPerTier, MEANINGS.projects),
    storage_gb: used(PerTier, MEANINGS.storage_gb),
    cpus: used(PerTier, MEANINGS.cpus),
    memory_gib: used(PerTier, MEANINGS.memory_gib),
    credits_per_hour: used(PerTier, MEANINGS.credits_per_hour),
    ...prices,
  },
  { $id: 'Plan' },
)
export type AccountPlan = Static<typeof AccountPlan>

const { tiers: givenTiers, servers: givenServers, ...givenPrices } = planFields(givenAmount)

/** Fields of a plan that replace those of another plan. Missing ones are unchanged. */
export const PlanOverrides = worded(
  Type.Partial(
    closed({
      tiers: givenTiers,
      servers: givenServers,
      projects: someTiers('ProjectLimits', integer({ minimum: 0, maximum: 10_000 }), MEANINGS.projects),
      storage_gb: someTiers(
        'StorageLimits',
        Type.Number({ minimum: 0.001, maximum: 1_000_000 }),
        MEANINGS.storage_gb,
      ),
      cpus: someTiers('CpuLimits', Type.Number({ minimum: 0.01, maximum: 1_024 }), MEANINGS.cpus),
      memory_gib: someTiers(
        'MemoryLimits',
        Type.Number({ minimum: 0.0625, maximum: 65_536 }),
        MEANINGS.memory_gib,
      ),
      credits_per_hour: someTiers(
        'HourlyPrices',
        givenAmount({ minimum: 0, maximum: 1_000_000 }),
        MEANINGS.credits_per_hour,
      ),
      ...givenPrices,
    }),
    { $id: 'PlanOverrides', additionalProperties: false },
  ),
  'an object with fields of a plan',
)
export type PlanOverrides = Static<typeof PlanOverrides>

/** An account as its own keys see it. */
export const OwnAccount = Type.Object(
  {
    id: Type.String(),
    label: Type.String(),
    plan: AccountPlan,
    budget_cap: Type.Number({ description: 'Credits that it may use in a month.' }),
    credits_used: Type.Number({ description: 'Credits used in this month.' }),
    key: Type.Object(
      {
        id: Type.String(),
        label: Type.String(),
        scoped: Type.Boolean({ description: 'Whether it reaches listed servers and projects only.' }),
      },
      {
        $id: 'OwnKey',
        description: 'The credential of the request: an API key, a program that was let in, or a browser.',
      },
    ),
  },
  { $id: 'OwnAccount', additionalProperties: true },
)
export type OwnAccount = Static<typeof OwnAccount>

/** An account, as the control API shows it. */
export const Account = Type.Object(
  {
    id: Type.String(),
    label: Type.String(),
    created_at: Type.String({ format: 'date-time' }),
    plan: AccountPlan,
    budget_cap: Type.Number({ description: 'Credits that it may use in a month.' }),
    credits_used: Type.Number({ description: 'Credits used in this month.' }),
    month: Type.String({ description: 'The month that they count for, such as 2030-01.' }),
    servers: Type.Number({ description: 'How many it has.' }),
  },
  { $id: 'Account' },
)
export type Account = Static<typeof Account>

/** Credits that an account may use in a month. */
export const BudgetCap = givenAmount({ minimum: 0, maximum: LARGEST_CAP, description: 'Credits a month.' })

/** Credits that an account has used in a month, with the precision of units. */
export const CreditsUsed = Type.Number({
  minimum: 0,
  maximum: LARGEST_CAP,
  description: 'What the account has used in this month.',
})
