import { Database as Sqlite } from 'bun:sqlite'
import { createReadStream, existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import {
  childPath,
  DirectoryChain,
  isTemporary,
  Listing,
  MAX_PATH_BYTES,
  pinRoot,
} from '../../compute/trees.ts'
import { codeOf } from '../../runtime/error-info.ts'
import { Pace } from '../../runtime/pace.ts'
import { serverArchive } from '../../storage/state.ts'
import { holdsInodes } from '../../system/files.ts'

/** A state to compare: where its database is, and the directory with the files of its servers. */
export interface ComparedState {
  readonly database: string
  readonly servers: string
  /** Packs the files of a server that are not there as a tar; null if they are. */
  readonly pack?: ((id: string) => AsyncIterable<Uint8Array> | null) | undefined
}

type Change = 'added' | 'removed' | 'changed'

/** How many things of a kind differ, and which, as far as they are listed. */
interface KindDiff {
  readonly kind: string
  readonly added: number
  readonly removed: number
  readonly changed: number
  readonly items: { change: Change; id: string; name: string | null; fields: string[] }[]
}

/** Which files of a server differ. */
interface FilesDiff {
  readonly server_id: string
  readonly added: number
  readonly removed: number
  readonly changed: number
  readonly files: { change: Change; path: string }[]
  /** Whether all files were looked at: there may be too many, or directories that berth's user may not read. */
  readonly is_complete: boolean
}

/** What differs between two states. */
export interface StateDiff {
  readonly kinds: KindDiff[]
  readonly files: FilesDiff[]
}

/** Things of a kind and files of a server that are listed at most. @bound reader */
const MAX_LISTED = 100

/** Files of a server that are looked at. @bound client */
const MAX_FILES = 100_000

/** Rows of a table that are compared, newest first. @bound client */
const MAX_ROWS = 20_000

/** Tables of things that people know, and the columns that name one. All have in common that no column changes by itself. */
const KINDS: readonly { kind: string; table: string; id: string; name: string | null }[] = [
  { kind: 'accounts', table: 'accounts', id: 'id', name: 'label' },
  { kind: 'servers', table: 'servers', id: 'id', name: 'task' },
  { kind: 'projects', table: 'projects', id: 'id', name: 'name' },
  { kind: 'deployments', table: 'deployments', id: 'id', name: 'server_id' },
  { kind: 'tasks', table: 'tasks', id: 'id', name: 'goal' },
  { kind: 'builds', table: 'builds', id: 'id', name: 'goal' },
  { kind: 'secrets', table: 'secrets', id: "server_id || project_id || ' ' || name", name: 'name' },
  { kind: 'keys', table: 'api_keys', id: 'id', name: 'label' },
  { kind: 'programs', table: 'oauth_grants', id: 'id', name: 'client_id' },
  { kind: 'webhooks', table: 'webhooks', id: 'id', name: 'url' },
  { kind: 'events', table: 'events', id: 'id', name: 'event' },
  { kind: 'deliveries', table: 'deliveries', id: 'id', name: 'webhook_id' },
  { kind: 'inbox', table: 'inbox', id: 'id', name: 'name' },
  { kind: 'scenarios', table: 'scenarios', id: 'position', name: "scenario ->> '$.name'" },
  { kind: 'faults', table: 'faults', id: 'id', name: null },
]

/** Columns that change while nothing is done. */
const UNQUIET: ReadonlySet<string> = new Set([
  ...['storage_bytes', 'credit_units', 'carry_ms', 'metered_at', 'handle', 'updated_at'],
  ...['last_used_at', 'hits', 'announced', 'from_seq'],
])

/** Returns the differences between two states, of which the second is the later one. */
export async function compareStates(from: ComparedState, to: ComparedState): Promise<StateDiff> {
  using before = new Sqlite(from.database, { readonly: true })
  using after = new Sqlite(to.database, { readonly: true })
  const kinds = KINDS.map((kind) => compareRows(kind, rowsOf(before, kind), rowsOf(after, kind))).filter(
    differs,
  )
  const ids = new Set([...serversOf(before), ...serversOf(after)])
  const files: FilesDiff[] = []
  for (const id of [...ids].sort()) {
    const [old, now] = [await filesOfServer(from, id), await filesOfServer(to, id)]
    files.push(compareFiles(id, old, now))
  }
  return { kinds, files: files.filter((server) => differs(server) || !server.is_complete) }
}

interface Counts {
  added: number
  removed: number
  changed: number
}

const differs = ({ added, removed, changed }: Counts): boolean => added + removed + changed > 0

type Row = Readonly<Record<string, unknown>>

/** Returns the rows of a kind by id, without columns that change by themselves; none if an older schema lacks the table. */
function rowsOf(database: Sqlite, { table, id, name }: (typeof KINDS)[number]): Map<string, Row> {
  const known = database.query<{ name: string }, []>(`PRAGMA table_info(${table})`).all()
  if (known.length === 0) return new Map()
  const columns = known.map((column) => column.name).filter((column) => !UNQUIET.has(column))
  const rows = database
    .query<Row & { ':id': unknown; ':name': unknown }, []>(
      `SELECT ${id} AS ":id", ${name ?? 'NULL'} AS ":name", ${columns.join(', ')} FROM ${table} ORDER BY 1 DESC LIMIT ${MAX_ROWS}`,
    )
    .all()
  return new Map(rows.map((row) => [String(row[':id']), row]))
}

function compareRows(
  { kind }: { kind: string },
  before: Map<string, Row>,
  after: Map<string, Row>,
): KindDiff {
  const items: KindDiff['items'] = []
  const nameOf = (row: Row): string | null =>
    row[':name'] === null ? null : String(row[':name']).slice(0, 200)
  // What is older than the rows of a table that has more than are compared may be on the other side.
  const oldest = [before, after].flatMap((rows) => (rows.size < MAX_ROWS ? [] : [...rows.keys()].slice(-1)))
  const isCompared = (id: string): boolean => oldest.every((other) => id >= other)
  for (const [id, row] of after) {
    if (!isCompared(id)) continue
    const old = before.get(id)
    if (old === undefined) items.push({ change: 'added', id, name: nameOf(row), fields: [] })
    else {
      // A column that only one schema has does not count as a difference.
      const fields = Object.keys(row).filter((field) => field in old && !isSame(row[field], old[field]))
      if (fields.length > 0)
        items.push({
          change: 'changed',
          id,
          name: nameOf(row),
          fields: fields.filter((field) => !field.startsWith(':')),
        })
    }
  }
  for (const [id, row] of before) {
    if (!after.has(id) && isCompared(id)) items.push({ change: 'removed', id, name: nameOf(row), fields: [] })
  }
  return { kind, ...countsOf(items), items: items.slice(0, MAX_LISTED) }
}

const isSame = (a: unknown, b: unknown): boolean =>
  a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : a === b

const serversOf = (database: Sqlite): string[] =>
  database
    .query<{ id: string }, []>('SELECT id FROM servers')
    .all()
    .map(({ id }) => id)

/** Files by path, each with a mark of its version, and whether these are all. */
interface FoundFiles {
  readonly files: ReadonlyMap<string, string>
  readonly isComplete: boolean
}

/** Lists the files of a server in a state: those that it packs, those of an archive in it, or of a directory. */
async function filesOfServer({ servers, pack }: ComparedState, id: string): Promise<FoundFiles> {
  const packed = pack?.(id) ?? null
  if (packed !== null) return await filesIn(packed)
  const archive = serverArchive(servers, id)
  return existsSync(archive) ? await filesIn(createReadStream(archive)) : await filesOf(join(servers, id))
}

/** Lists the files of a tar with the marks that they have as files of a directory. */
async function filesIn(archive: AsyncIterable<Uint8Array>): Promise<FoundFiles> {
  const files = new Map<string, string>()
  const entries = extract()
  const feeding = pipeline(Readable.from(archive, { objectMode: false }), entries)
  feeding.catch(() => {})
  for await (const entry of entries) {
    const { name, type, size = 0, mode = 0, pax, linkname } = entry.header
    entry.resume()
    const modifiedAt = Math.floor(Number((pax as Record<string, string> | undefined)?.mtime) * 1000 + CLOSE)
    if (type === 'link') files.set(name, files.get(linkname ?? '') ?? '')
    else if (type === 'symlink')
      files.set(name, markOf('link', Buffer.byteLength(linkname ?? ''), mode, modifiedAt))
    else if (type !== 'directory') files.set(name, markOf('file', size, mode, modifiedAt))
    if (files.size >= MAX_FILES) return { files, isComplete: false }
  }
  await feeding
  return { files, isComplete: true }
}

/** What a time in seconds may lack of the milliseconds that it was made from, because it is no exact number. */
const CLOSE = 0.001

const markOf = (kind: 'file' | 'link', size: number, mode: number, modifiedAt: number): string =>
  `${kind} ${size} ${mode & 0o777} ${modifiedAt}`

/**
 * Lists the files below a directory without following links: programs may change it meanwhile. A file counts as changed if
 * its size, its mode or its time of change differs.
 */
async function filesOf(root: string): Promise<FoundFiles> {
  const files = new Map<string, string>()
  let isComplete = true
  const skip = (): void => {
    isComplete = false
  }
  const workspace = unlessGone(() => pinRoot(join(root, 'workspace'), holdsInodes), skip)
  if (workspace === null) return { files, isComplete }
  using pinned = workspace
  using chain = new DirectoryChain(pinned)
  const pace = new Pace()
  const frames = [{ path: '', entries: await chain.list(pinned) }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    if (pace.due) await pace.rest()
    if (files.size >= MAX_FILES) return { files, isComplete: false }
    const entry = frame.entries.pop()
    if (entry === undefined) {
      frames.pop()
      if (frames.length > 0) chain.leave()
      continue
    }
    const name = String(entry.name)
    if (isTemporary(name)) continue
    const path = frame.path === '' ? name : `${frame.path}/${name}`
    // No call could name it, and such paths could fill memory.
    if (path.length > MAX_PATH_BYTES) continue
    const directory = entry.kind === 'directory' ? unlessGone(() => chain.enter(entry.name), skip) : null
    if (directory !== null) {
      const entries = await chain.list(directory).catch(skip)
      frames.push({ path, entries: entries ?? Listing.of(directory) })
      continue
    }
    const stats = unlessGone(() => lstatSync(childPath(chain.current, entry.name)), skip)
    if (stats && !stats.isDirectory() && !stats.isSocket() && !stats.isFIFO())
      files.set(
        path,
        markOf(stats.isSymbolicLink() ? 'link' : 'file', stats.size, stats.mode, Math.floor(stats.mtimeMs)),
      )
  }
  return { files, isComplete }
}

function compareFiles(serverId: string, before: FoundFiles, after: FoundFiles): FilesDiff {
  const items: FilesDiff['files'] = []
  for (const [path, mark] of after.files) {
    const old = before.files.get(path)
    if (old === undefined) items.push({ change: 'added', path })
    else if (old !== mark) items.push({ change: 'changed', path })
  }
  for (const path of before.files.keys()) if (!after.files.has(path)) items.push({ change: 'removed', path })
  items.sort((a, b) => (a.path < b.path ? -1 : 1))
  return {
    server_id: serverId,
    ...countsOf(items),
    files: items.slice(0, MAX_LISTED),
    is_complete: before.isComplete && after.isComplete,
  }
}

function countsOf(items: readonly { change: Change }[]): Counts {
  const counts = { added: 0, removed: 0, changed: 0 }
  for (const { change } of items) counts[change] += 1
  return counts
}

/** Returns null if the path is gone; also, after a call of `skip`, if it is closed to berth's user. */
function unlessGone<T>(look: () => T, skip: () => void): T | null {
  try {
    return look()
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EACCES') skip()
    else if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'ELOOP') throw error
    return null
  }
}
