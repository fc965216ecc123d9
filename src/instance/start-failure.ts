import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { ComputeDriver } from '../compute/compute.ts'
import { StartupError } from '../errors.ts'
import { codeOf, isDiskFull, messageOf } from '../runtime/error-info.ts'
import { shellQuote } from '../runtime/shell-quote.ts'
import type { DataDirectory } from '../storage/data-directory.ts'
import { ENGINE, SERVERS } from '../storage/state.ts'

/** Codes of SQLite for a file that is damaged or no database. */
const DAMAGED = /^SQLITE_(?:CORRUPT|NOTADB)/

/** Most characters of SQLite's message: it may quote the definition of a table. @bound reader */
const MOST_CAUSE = 120

/**
 * Returns the failure of a start as one sentence with cause and remedy, if its cause is a full disk or a damaged database;
 * otherwise unchanged.
 *
 * @param path the data directory
 */
export async function startFailure(error: unknown, path: string): Promise<unknown> {
  if (isDiskFull(error)) {
    return new StartupError(
      `The disk that holds the data directory ${path} is full. Free space there, then start again: snapshots in ${path}/snapshots, the package cache ${path}/packages and files below ${path}/servers can be deleted while berth is stopped.`,
      { cause: error },
    )
  }
  const damage = damageIn(error)
  if (damage === null) return error
  return new StartupError(
    `The database ${path}/berth.db is damaged: ${briefly(damage)}. Nothing was changed. ${await wayBack(path)}`,
    { cause: error },
  )
}

function damageIn(error: unknown): Error | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (DAMAGED.test(codeOf(cause) ?? '')) return cause
  return null
}

function briefly(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n')
  return line.length > MOST_CAUSE ? `${line.slice(0, MOST_CAUSE)} …` : line.replace(/\.$/, '')
}

/** Most ids that the refusal names. @bound reader */
const MOST_NAMED = 3

/**
 * Refuses a data directory that has lost its database and still has files of servers: a start would begin a new state, in
 * which nobody owns them. A power cut can leave the database with 0 bytes.
 *
 * @throws StartupError
 */
export async function refuseLostDatabase({ path, database }: DataDirectory): Promise<void> {
  const state = lossOf(database)
  const servers = join(path, SERVERS)
  if (state === null || !isDirectory(servers)) return
  const { ServerDirectories } = await import('../compute/remains.ts')
  const ids = new ServerDirectories(path).claimed()
  if (ids.length > 0)
    throw await lostDatabase(path, `${database} ${state}`, { holder: servers, ids, away: servers })
}

/**
 * Refuses a data directory that has lost its database and whose servers have files on an engine, as `refuseLostDatabase`
 * does for those of this machine.
 *
 * @param selecting resolves to what runs servers
 * @throws StartupError; `ComputeError` if the engine does not respond
 */
export async function refuseLostDatabaseOfEngine(
  { path, database }: DataDirectory,
  selecting: Promise<{ driver: ComputeDriver }>,
): Promise<void> {
  const state = lossOf(database)
  const notes = join(path, ENGINE)
  if (state === null || !isDirectory(notes)) return
  const { driver } = await selecting
  const ids = (await driver.stored?.()) ?? []
  if (ids.length > 0)
    throw await lostDatabase(path, `${database} ${state}`, {
      holder: `--compute ${driver.name}`,
      ids,
      away: notes,
    })
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Returns what a database is, as the end of a sentence, if it is lost; otherwise null. @throws StartupError for a directory */
function lossOf(database: string): string | null {
  const found = statSync(database, { throwIfNoEntry: false })
  if (found?.isDirectory()) {
    throw new StartupError(
      `${database} is a directory, and berth's database belongs in its place. Move it away, put the database back, or choose another directory with --data.`,
    )
  }
  if (found === undefined) return 'is missing'
  return found.size > 0 ? null : 'is empty'
}

async function lostDatabase(
  path: string,
  lost: string,
  { holder, ids, away }: { holder: string; ids: readonly string[]; away: string },
): Promise<StartupError> {
  const more = ids.length > MOST_NAMED ? ', …' : ''
  return new StartupError(
    `The database ${lost}, but ${holder} holds the files of ${ids.length === 1 ? 'a server' : `${ids.length} servers`} (${ids.slice(0, MOST_NAMED).join(', ')}${more}). Nothing was changed. Put the database back. ${await wayBack(path)} To start anew, move ${away} away first.`,
  )
}

/**
 * Returns how to go on without the database of a data directory, in a sentence: with the newest snapshot there.
 *
 * @param path the data directory
 */
async function wayBack(path: string): Promise<string> {
  const { Snapshots } = await import('../testing/testing.ts')
  const [newest] = new Snapshots(path).list()
  if (newest === undefined) return `${join(path, 'snapshots')} has no snapshot to go back to.`
  const command = shellQuote(['berth', 'serve', '--snapshot', join(path, 'snapshots', newest.name)])
  return `The newest snapshot, of ${newest.created_at}, goes on in a new directory: ${command} --data NEW.`
}
