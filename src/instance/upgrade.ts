import { Database as Sqlite } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import type { ComputeDriver } from '../compute/compute.ts'
import { BerthError, StartupError } from '../errors.ts'
import { type SteerableClock, toIso } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import type { Logger } from '../runtime/logger.ts'
import type { DataDirectory } from '../storage/data-directory.ts'
import { SCHEMA } from '../storage/database.ts'
import { Snapshots } from '../testing/testing.ts'
import { packServers, storedServers } from './carried-files.ts'

/** Dependencies of `prepareUpgrade`. */
interface UpgradeOptions {
  dataDirectory: DataDirectory
  /** The number of the schema in the data directory, which is not this berth's. */
  schema: number
  /** The version of this berth. */
  version: string
  clock: SteerableClock
  logger: Logger
  /** What has the servers' files. */
  driver: ComputeDriver
}

const PREFIX = 'before-upgrade-'

/**
 * Saves the state as the snapshot `before-upgrade-A-sM-to-B-sN`, because this berth is about to change the schema of its
 * database (`migrate` of `storage/migrate.ts`). A and B are the versions of the berth that wrote it and of this one, M and N
 * are the numbers of their schemas. It replaces no other: the next of that name ends with `-2`.
 *
 * @throws StartupError if the state cannot be saved, or a newer berth wrote it
 */
export async function prepareUpgrade(options: UpgradeOptions): Promise<void> {
  const { dataDirectory, schema, version, clock, logger, driver } = options
  const written = dataDirectory.readVersion()
  const writer = written ?? `of schema ${schema}`
  if (schema > SCHEMA) throw newerState(options, writer)
  const snapshots = new Snapshots(dataDirectory.path)
  const base = `${PREFIX}${written === null ? '' : `${written}-`}s${schema}-to-${version}-s${SCHEMA}`
  const name = unusedName(base, snapshots)
  const file = { name, created_at: toIso(clock.now()), version: writer, schema, clock: clock.state }
  const servers = storedServers(dataDirectory.database)
  try {
    await snapshots.save(
      file,
      (copy) => copyDatabase(dataDirectory.database, copy),
      undefined,
      (copy) => packServers(driver, servers, copy),
    )
  } catch (error) {
    const remedy =
      error instanceof BerthError ? '' : ' Make room on the disk, or choose another directory with --data.'
    throw new StartupError(
      `The state of berth ${writer} in ${dataDirectory.path} cannot be saved before berth ${version} changes it: ${messageOf(error).replace(/\.$/, '')}.${remedy}`,
    )
  }
  logger.info(
    `the state of berth ${writer} was saved as the snapshot ${name} before berth ${version} changed it`,
  )
}

/** Returns a name that no snapshot has, not even a damaged one. */
function unusedName(base: string, snapshots: Snapshots): string {
  let name = base
  for (let number = 2; snapshots.has(name); number += 1) name = `${base}-${number}`
  return name
}

/** Copies a database as it is, whatever its schema. */
function copyDatabase(from: string, to: string): void {
  closeSync(openSync(to, 'wx', 0o600))
  using sqlite = new Sqlite(from, { readwrite: true, create: false })
  sqlite.query('VACUUM INTO ?').run(to)
}

/**
 * Returns the refusal of a state that a newer berth wrote, and how to go on with what it was before: the newest snapshot
 * before an upgrade that this berth can read, under its name of today or of before (`before-upgrade-A-schemaM-B`).
 */
function newerState({ dataDirectory, schema, version }: UpgradeOptions, writer: string): StartupError {
  const { path } = dataDirectory
  const before = new Snapshots(path)
    .list()
    .find(({ name, schema: saved }) => name.startsWith(PREFIX) && saved <= SCHEMA)
  const remedy = before
    ? ` What it held before that upgrade is in the snapshot ${before.name}: copy ${path}/snapshots/${before.name}, with master.key and credentials.json of ${path}, to a new directory, and name that with --data.`
    : ' Or choose another directory with --data.'
  const [wrote, own] =
    writer === version
      ? [`a newer build of berth ${writer}`, 'this is an older one']
      : [`the newer berth ${writer}`, `this is berth ${version}`]
  return new StartupError(
    `The data directory ${path} was written by ${wrote} (schema ${schema}); ${own} (schema ${SCHEMA}). Run that one.${remedy}`,
  )
}
