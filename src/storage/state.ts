/** Which files of a data directory are the state, and how one state replaces another completely or not at all. */
import { constants, Database as Sqlite } from 'bun:sqlite'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { namesIn } from '../runtime/if-present.ts'
import { removeTree, removeTreeAside, writePrivate } from './files.ts'

/**
 * Entries of a data directory that are not part of its state: its identity and lock, what can be recreated, and
 * copies of other states. All other entries are state: a reset removes them and a snapshot copies them, so nothing
 * new can be forgotten.
 */
const BESIDE_STATE: readonly RegExp[] = [
  /^\.gitignore$/,
  /^lock(?:-.+)?$/,
  /^instance\.json/,
  /^credentials\.json/,
  // Browsers stay signed in.
  /^sessions\.(?:db|json)/,
  /^master\.key/,
  // The version of the berth that wrote here last.
  /^version/,
  // The port of the last start.
  /^port/,
  // The log of an instance in the background.
  /^berth\.log/,
  // What sandboxes can see, recreated at each start.
  /^sandbox$/,
  // Which of them run.
  /^running$/,
  // The cache of packages.
  /^packages$/,
  /^snapshots$/,
  // Output of executions: it goes with their records, which a start compares it with.
  /^executions$/,
  // The data directory's own id on engines, and what is being made there.
  /^engine$/,
  /^swap$/,
]

/** The directory of the servers' directories. */
export const SERVERS = 'servers'

/** The directory of what is noted about engines. It is beside the state. */
export const ENGINE = 'engine'

/** The directory in which files are prepared that are sent to servers elsewhere. It is part of the state. */
export const STAGED = 'staged'

/** End of the name of an archive of a server's files, which is in `SERVERS` beside the servers' directories. */
const ARCHIVE = '.tar'

/** Returns the path of the archive of a server's files. @param servers the directory `SERVERS` of a state */
export const serverArchive = (servers: string, id: string): string => join(servers, `${id}${ARCHIVE}`)

/**
 * Reports whether a state has files of servers in archives: they were copied from where they are kept elsewhere, and are not
 * yet where they belong.
 */
export const hasServerArchives = (state: string): boolean =>
  namesIn(join(state, SERVERS)).some((name) => name.endsWith(ARCHIVE))

/** Returns the names in a data directory that make up its state. */
export const stateEntries = (path: string): string[] =>
  readdirSync(path).filter((name) => !BESIDE_STATE.some((beside) => beside.test(name)))

/** Returns the paths at which another state is prepared and the replaced one is kept. */
const swapPaths = (path: string) => ({
  swap: join(path, 'swap'),
  next: join(path, 'swap', 'next'),
  ready: join(path, 'swap', 'ready.json'),
  past: join(path, 'swap', 'past'),
  /** Once this file exists, the next state is in effect: any later process completes the swap. */
  decided: join(path, 'swap', 'decided.json'),
})

/**
 * Replaces the state of a data directory: completely, or not at all. The next state is prepared in `staging`;
 * `commit` then swaps by renames, which work on a full disk. If the process is killed before, the state is unchanged;
 * if after, the next process completes the swap (`finishSwap`). Nothing may have the database open meanwhile.
 */
export class StateSwap {
  readonly #path: string
  /** The directory for the next state, empty at first. */
  readonly staging: string

  /** @param path the data directory, which this process holds */
  constructor(path: string) {
    const { swap, next } = swapPaths(path)
    this.#path = path
    this.staging = next
    removeTree(swap)
    mkdirSync(next, { recursive: true, mode: 0o700 })
  }

  /**
   * Notes that the next state is complete: nothing is put into `staging` any more.
   *
   * @param kept directories below the state, as `servers/ID`, that are of no state: they stay where they are
   */
  ready(kept: readonly string[] = []): void {
    const { ready, past } = swapPaths(this.#path)
    mkdirSync(past, { mode: 0o700 })
    for (const path of kept) mkdirSync(dirname(join(this.staging, path)), { recursive: true, mode: 0o700 })
    writePrivate(ready, JSON.stringify({ entries: readdirSync(this.staging), kept }))
  }

  /** Swaps the states, once the next is ready. */
  commit(): void {
    const { ready, decided } = swapPaths(this.#path)
    renameSync(ready, decided)
    swapEntries(this.#path)
  }

  /** Removes what is left of the swap. */
  clear(): Promise<void> {
    return removeTreeAside(swapPaths(this.#path).swap)
  }
}

/** Completes a swap that a killed process had committed, and removes one that it had not. */
export function finishSwap(path: string): void {
  const { swap, decided } = swapPaths(path)
  if (!existsSync(swap)) return
  if (existsSync(decided)) swapEntries(path)
  removeTree(swap)
}

/** Renames entry by entry; continues an interrupted swap. */
function swapEntries(path: string): void {
  const { next, past, decided } = swapPaths(path)
  const decision = JSON.parse(readFileSync(decided, 'utf8')) as { entries: string[]; kept?: string[] }
  const { entries, kept = [] } = decision
  mkdirSync(past, { recursive: true, mode: 0o700 })
  for (const name of stateEntries(path)) {
    // A committed entry that is not waiting has already been moved.
    if (entries.includes(name) && !existsSync(join(next, name))) continue
    renameSync(join(path, name), join(past, name))
  }
  for (const name of entries) {
    if (existsSync(join(next, name))) renameSync(join(next, name), join(path, name))
  }
  for (const name of kept) {
    if (existsSync(join(past, name))) renameSync(join(past, name), join(path, name))
  }
  rmSync(decided)
}

/** Reports whether there is a database: a power cut can leave an empty file. */
export const hasDatabase = (path: string): boolean =>
  (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Returns the ids of the servers that a database names, also of those that are deleted and whose files may not be removed
 * yet. Only reads it.
 *
 * @throws the system's error if it cannot be read
 */
export function serversIn(path: string): string[] {
  using sqlite = openToRead(path)
  const tables = sqlite
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('servers', 'deleted_servers')",
    )
    .all()
  return tables.flatMap(({ name }) =>
    sqlite
      .query<{ id: string }, []>(`SELECT id FROM ${name}`)
      .all()
      .map(({ id }) => id),
  )
}

/**
 * Returns the handles that the database of a data directory names, as JSON: of its servers, and of files that are to be
 * removed; null while another state is about to take its place. Only reads it.
 *
 * @throws the system's error if it cannot be read
 */
export function handlesIn(path: string): { needed: string[]; doomed: string[] } | null {
  if (existsSync(swapPaths(path).decided)) return null
  using sqlite = openToRead(join(path, 'berth.db'))
  const handles = (query: string): string[] =>
    sqlite
      .query<{ handle: string }, []>(query)
      .all()
      .map(({ handle }) => handle)
  return {
    needed: handles('SELECT handle FROM servers'),
    doomed: handles('SELECT handle FROM deleted_servers WHERE id NOT IN (SELECT id FROM servers)'),
  }
}

/** Opens a database without leaving files beside it: SQLite would make those of the write-ahead log, and keep them. */
function openToRead(path: string): Sqlite {
  if (existsSync(`${path}-wal`)) return new Sqlite(path, { readonly: true })
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
  return new Sqlite(`${pathToFileURL(path)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
}
