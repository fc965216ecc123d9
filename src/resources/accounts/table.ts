import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { PlanOverrides } from './model.ts'
import type { TierName } from './tiers.ts'

/** Accounts, which own all other resources. */
export const accounts = sqliteTable('accounts', {
  id: text('id').primaryKey(),
  label: text('label').notNull(),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
  /** Overrides of the instance's plan. */
  plan: text('plan', { mode: 'json' }).$type<PlanOverrides>(),
  /** Units of credits a month; null for the plan's cap. */
  budgetCap: integer('budget_cap'),
})

/** The use of accounts by calendar month (UTC). */
export const accountUsage = sqliteTable(
  'account_usage',
  {
    accountId: text('account_id').notNull(),
    /** Such as `2030-01`. */
    month: text('month').notNull(),
    /** Units of credits. */
    used: integer('used').notNull(),
    /** The caps, in units, for which quota.threshold was emitted. */
    thresholdCaps: text('threshold_caps', { mode: 'json' }).$type<number[]>().notNull().default([]),
    /** The caps, in units, for which quota.cap_reached was emitted. */
    reachedCaps: text('reached_caps', { mode: 'json' }).$type<number[]>().notNull().default([]),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.month] })],
)

/** The use of servers by day (UTC). A row without a day says that there was use before days were kept. */
export const dailyUsage = sqliteTable(
  'daily_usage',
  {
    accountId: text('account_id').notNull(),
    /** Such as `2030-01-31`. */
    day: text('day').notNull(),
    /** May be deleted by now. */
    serverId: text('server_id').notNull(),
    kind: text('kind').$type<'running' | 'task' | 'build'>().notNull(),
    /** Units of credits. */
    units: integer('units').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day, table.serverId, table.kind] })],
)

/** Returns the columns of servers that only metering writes. */
export const meteredColumns = () => ({
  /** Units of credits used, ever. */
  creditUnits: integer('credit_units').notNull().default(0),
  /** Milliseconds of the begun second that is not charged yet. */
  carryMs: integer('carry_ms').notNull().default(0),
  /** Until when it is charged, milliseconds since 1970 by berth's clock; null while it sleeps. */
  meteredAt: integer('metered_at'),
})

/** The columns of servers that metering uses. */
export const meteredServers = sqliteTable('servers', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  tier: text('tier').$type<TierName>().notNull(),
  ...meteredColumns(),
})
