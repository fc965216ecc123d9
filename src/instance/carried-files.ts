import { Database as Sqlite } from 'bun:sqlite'
import { createReadStream, existsSync, mkdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type ComputeDriver, NO_WISH, type ServerHandle } from '../compute/compute.ts'
import { ServerDirectories } from '../compute/remains.ts'
import { LocalWorkspace } from '../compute/trees.ts'
import { BerthError, badRequest } from '../errors.ts'
import type { AccountPlan } from '../resources/accounts/model.ts'
import { limitsOf, withOverrides } from '../resources/accounts/plan.ts'
import type { TierName } from '../resources/accounts/tiers.ts'
import { filesKeyOf } from '../resources/servers/table.ts'
import { isDiskFull, messageOf } from '../runtime/error-info.ts'
import { copyCancelled } from '../storage/files.ts'
import { hasServerArchives, SERVERS, serverArchive } from '../storage/state.ts'

/** A server in a state. */
export interface StoredServer {
  readonly id: string
  readonly handle: ServerHandle
}

/** Returns the servers of a database that this process does not have open. */
export function storedServers(database: string): StoredServer[] {
  using sqlite = new Sqlite(database, { readwrite: true, create: false })
  return serversOf(sqlite, 'servers')
}

/** Returns the servers of a database, or those whose files may not be removed yet. */
function serversOf(sqlite: Sqlite, table: 'servers' | 'deleted_servers'): StoredServer[] {
  return sqlite
    .query<{ id: string; handle: string }, []>(`SELECT id, handle FROM ${table} ORDER BY rowid`)
    .all()
    .map(({ id, handle }) => ({ id, handle: JSON.parse(handle) }))
}

/** Returns the bytes that each server may hold, by the plan of its account. */
function capacitiesOf(sqlite: Sqlite, base: AccountPlan): Map<string, number> {
  const rows = sqlite
    .query<{ id: string; tier: TierName; plan: string | null }, []>(
      'SELECT servers.id, tier, plan FROM servers JOIN accounts ON accounts.id = account_id',
    )
    .all()
  return new Map(
    rows.map(({ id, tier, plan }) => {
      const own = plan === null ? base : withOverrides(base, JSON.parse(plan))
      return [id, limitsOf(own, tier).storageBytes]
    }),
  )
}

/**
 * Packs the files of servers that are not in the data directory into a copy of the state, an archive each. They must not
 * change meanwhile. The copy has those already that are in the data directory: of servers of this machine, and in archives
 * that `unpackServers` has not put where they belong.
 *
 * @param state the directory of the copy
 * @param signal cancels it
 * @throws BerthError 502 if those of one cannot be had, which the sentence names
 */
export async function packServers(
  driver: ComputeDriver,
  servers: readonly StoredServer[],
  state: string,
  signal?: AbortSignal,
): Promise<void> {
  if (driver.keepsFilesHere) return
  mkdirSync(join(state, SERVERS), { recursive: true, mode: 0o700 })
  for (const { id, handle } of servers) {
    const archive = serverArchive(join(state, SERVERS), id)
    if (handle.kind === 'local' || existsSync(archive)) continue
    try {
      await write(archive, driver.workspace(handle).pack(), signal)
    } catch (error) {
      if (signal?.aborted) throw copyCancelled()
      if (isDiskFull(error)) throw error
      throw new BerthError(
        'compute_backend_error',
        `The files of the server ${id} could not be saved: ${messageOf(error)} Nothing was saved. Delete that server or make it reachable, then save again.`,
        { cause: error },
      )
    }
  }
}

/** Writes bytes into a new file that only its owner may read. */
async function write(path: string, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  for await (const chunk of content) {
    signal?.throwIfAborted()
    await file.writeFile(chunk)
  }
}

/** The options of `unpackServers`. */
interface UnpackOptions {
  /** The plan of accounts without one of their own, which says what servers may hold. */
  plan: AccountPlan
  /** Whether all servers of the state need their files; otherwise those without an archive have theirs. */
  isWhole: boolean
  /** Called with each handle before files are put there. */
  made?: (server: StoredServer) => void
  /** Cancels it. */
  signal?: AbortSignal
}

/**
 * Gives the servers of a state that is not in use their files where the driver keeps them, and notes in its database where
 * that is. Files come from the archives of `packServers`, or from a state whose servers' files were in its directory. What
 * was done is kept if it is interrupted, and the next call goes on.
 *
 * @param state the directory of the state
 * @throws BerthError 400 if the state lacks the files of a server; `ComputeError`
 */
export async function unpackServers(
  driver: ComputeDriver,
  state: string,
  { plan, isWhole, made = () => {}, signal }: UnpackOptions,
): Promise<void> {
  if (!hasServerArchives(state) && (driver.keepsFilesHere || !isWhole)) return
  const here = new ServerDirectories(state)
  using sqlite = new Sqlite(join(state, 'berth.db'), { readwrite: true, create: false })
  const note = sqlite.query('UPDATE servers SET handle = ? WHERE id = ?')
  const capacity = capacitiesOf(sqlite, plan)
  for (const { id, handle } of serversOf(sqlite, 'servers')) {
    signal?.throwIfAborted()
    const archive = serverArchive(join(state, SERVERS), id)
    const source = existsSync(archive) ? createReadStream(archive) : null
    if (source === null && !isWhole) continue
    if (driver.keepsFilesHere) {
      if (source === null) continue
      await here.destroy({ kind: 'local', folder: `${SERVERS}/${id}` })
      const local = await here.create(id)
      here.keep(local)
      await new LocalWorkspace(here.workspace(local)).unpack(source)
      note.run(JSON.stringify(local), id)
      rmSync(archive)
      continue
    }
    const isLocal = handle.kind === 'local'
    if (source === null && !isLocal) {
      throw badRequest(`It lacks the files of the server ${id}: there is no ${SERVERS}/${id}.tar in it.`)
    }
    const files = source ?? new LocalWorkspace(here.workspace(handle)).pack()
    const wish = isLocal ? NO_WISH : driver.placement(handle)
    const placed = await driver.create(id, wish, capacity.get(id))
    made({ id, handle: placed })
    await driver.workspace(placed).unpack(files)
    driver.keep(placed)
    note.run(JSON.stringify(placed), id)
    if (source === null) rmSync(here.workspace(handle), { recursive: true, force: true })
    else rmSync(archive)
  }
}

/**
 * Notes in the database of a state that is about to take another's place what that one's servers have elsewhere, so that
 * the first start with it removes this. No process has either open, and both have this berth's schema.
 *
 * @param past absolute path of the database of the state that is replaced
 * @param next absolute path of the other one
 */
export function noteReplaced(past: string, next: string): void {
  using before = new Sqlite(past, { readwrite: true, create: false })
  using after = new Sqlite(next, { readwrite: true, create: false })
  const needed = new Set(serversOf(after, 'servers').map(({ handle }) => JSON.stringify(handle)))
  const note = after.query('INSERT OR REPLACE INTO deleted_servers (id, handle) VALUES (?, ?)')
  for (const { id, handle } of [...serversOf(before, 'servers'), ...serversOf(before, 'deleted_servers')]) {
    const text = JSON.stringify(handle)
    if (handle.kind !== 'local' && !needed.has(text)) note.run(filesKeyOf(id, handle), text)
  }
}
