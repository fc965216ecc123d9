import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { Handle } from '../../compute/driver.ts'
import { toIso } from '../../runtime/clock.ts'
import { toCredits } from '../accounts/credits.ts'
import { meteredColumns } from '../accounts/table.ts'
import { toGb } from '../accounts/tiers.ts'
import type { Region, Server, ServerStatus, Tier } from './model.ts'

/** Servers. The handle is the compute driver's; nothing here looks inside. */
export const servers = sqliteTable('servers', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  task: text('task').notNull(),
  tier: text('tier').$type<Tier>().notNull(),
  region: text('region').$type<Region>().notNull(),
  status: text('status').$type<ServerStatus>().notNull(),
  handle: text('handle', { mode: 'json' }).$type<Handle>().notNull(),
  /** As measured last. */
  storageBytes: integer('storage_bytes').notNull().default(0),
  /** Whether server.created was emitted for it. */
  announced: integer('announced', { mode: 'boolean' }).notNull().default(false),
  /** Where its workspace is published while it runs. */
  publicUrl: text('public_url'),
  ...meteredColumns(),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
})

/** A server as it is stored. */
export type ServerRow = typeof servers.$inferSelect

/** The only way from a row to the public shape. */
export const toServer = (row: ServerRow): Server => ({
  id: row.id,
  task: row.task,
  tier: row.tier,
  status: row.status,
  region: row.region,
  creditsUsed: toCredits(row.creditUnits),
  storageUsedGb: toGb(row.storageBytes),
  publicUrl: row.status === 'sleeping' ? null : row.publicUrl,
  createdAt: toIso(row.createdAt),
})
