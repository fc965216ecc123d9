import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { ServerHandle } from '../../compute/compute.ts'
import { toIso } from '../../runtime/clock.ts'
import { toCredits } from '../accounts/credits.ts'
import { toGb } from '../accounts/plan.ts'
import { meteredColumns } from '../accounts/table.ts'
import type { NetworkChoice, Region, Server, ServerStatus, Tier } from './model.ts'

/** Servers. Only the compute driver reads the handle. */
export const servers = sqliteTable('servers', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  task: text('task').notNull(),
  tier: text('tier').$type<Tier>().notNull(),
  region: text('region').$type<Region>().notNull(),
  status: text('status').$type<ServerStatus>().notNull(),
  handle: text('handle', { mode: 'json' }).$type<ServerHandle>().notNull(),
  /** The size at the last measurement. */
  storageBytes: integer('storage_bytes').notNull().default(0),
  /** Whether server.created was emitted. */
  announced: integer('announced', { mode: 'boolean' }).notNull().default(false),
  /** The URL of its published workspace while it runs. */
  publicUrl: text('public_url'),
  /** What is set for its network; null is the instance's default. */
  network: text('network', { mode: 'json' }).$type<NetworkChoice>(),
  ...meteredColumns(),
  /** Milliseconds since 1970, up to a minute old: see `LastUse`; null if it was not used yet. */
  lastUsedAt: integer('last_used_at'),
  /** Milliseconds since 1970. */
  createdAt: integer('created_at').notNull(),
})

/** Servers whose record is deleted, until their files are removed. */
export const deletedServers = sqliteTable('deleted_servers', {
  id: text('id').primaryKey(),
  handle: text('handle', { mode: 'json' }).$type<ServerHandle>().notNull(),
})

/** A server as it is stored. */
export type ServerRow = typeof servers.$inferSelect

/** Returns the key of files among those of deleted servers: the server itself may have others and go on. */
export const filesKeyOf = (id: string, handle: ServerHandle): string =>
  `${id.split(' ', 1)[0]} ${Bun.hash(JSON.stringify(handle)).toString(16)}`

/** Converts a row to the public form. */
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
