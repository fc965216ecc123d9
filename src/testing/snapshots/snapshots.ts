import {
  type Dirent,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
} from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import type { ClockState } from '../../runtime/clock.ts'
import { codeOf, isDiskFull, MAKE_ROOM, messageOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { runHelper } from '../../runtime/run-helper.ts'
import { findDamage, SCHEMA } from '../../storage/database.ts'
import {
  copyCancelled,
  copyTrees,
  notCopied,
  removeTree,
  removeTreeAside,
  writePrivate,
} from '../../storage/files.ts'
import { SERVERS, STAGED, stateEntries } from '../../storage/state.ts'
import { holdsInodes } from '../../system/files.ts'
import { NOT_SAVED, nextUndo, type UndoKind } from '../names.ts'
import type { ComparedState, StateDiff } from './compare.ts'

/** The metadata of a snapshot. */
interface SnapshotFile {
  name: string
  /** ISO 8601. */
  created_at: string
  /** The version of the berth that made it, and the number of its schema. */
  version: string
  schema: number
  /** Bytes that its files take. */
  bytes: number
  clock: ClockState
}

/** A snapshot in a list. */
export type Snapshot = Omit<SnapshotFile, 'clock'>

/** The database's files, which the database copies itself. */
const DATABASE = /^berth\.db(?:-.+)?$/

/** Most bytes of a snapshot's `snapshot.json`. @bound owner */
const FILE_LIMIT = 64 * 1024

const NAME = /^(?!\.)[\w.-]{1,100}$/

/**
 * The snapshots of one data directory, each in a directory below `snapshots`. They are not part of the state: a reset
 * keeps them, and a snapshot contains no others.
 */
export class Snapshots {
  readonly #path: string
  readonly #dir: string

  /** @param path the data directory */
  constructor(path: string) {
    this.#path = path
    this.#dir = join(path, 'snapshots')
  }

  /** Returns all snapshots but damaged ones, newest first. */
  list(): Snapshot[] {
    const names = ifPresent(() => readdirSync(this.#dir))
    return (names ?? [])
      .map((name) => this.#read(name))
      .filter((file) => file !== null)
      .sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
      .map(shown)
  }

  /**
   * Saves the state under a name, replacing an earlier snapshot of that name, whole or not at all.
   *
   * @param copyDatabase writes a copy of the database to a path that does not exist
   * @param signal cancels it
   * @param packServers adds the files of servers that are elsewhere to a directory; by default there are none
   * @throws BerthError 400 for an invalid name
   */
  async save(
    file: Omit<SnapshotFile, 'bytes'>,
    copyDatabase: (path: string) => void,
    signal?: AbortSignal,
    packServers: (dir: string) => Promise<void> = async () => {},
  ): Promise<Snapshot> {
    checkName(file.name)
    const place = join(this.#dir, file.name)
    const fresh = join(this.#dir, `.new-${file.name}`)
    try {
      removeTree(fresh)
      mkdirSync(fresh, { recursive: true, mode: 0o700 })
      copyDatabase(join(fresh, 'berth.db'))
      const entries = stateEntries(this.#path).filter((name) => !DATABASE.test(name))
      const inProgress = entries.filter((name) => [SERVERS, STAGED].includes(name))
      const own = entries.filter((name) => !inProgress.includes(name))
      await copyTrees(
        own.map((name) => join(this.#path, name)),
        fresh,
        signal,
      )
      for (const name of inProgress) await this.#copyFinished(name, fresh, signal)
      await packServers(fresh)
      const content: SnapshotFile = { ...file, bytes: await bytesOf(fresh) }
      writePrivate(join(fresh, 'snapshot.json'), `${JSON.stringify(content, null, 2)}\n`)
      const old = join(this.#dir, `.old-${file.name}`)
      removeTree(old)
      if (existsSync(place)) renameSync(place, old)
      renameSync(fresh, place)
      await removeTreeAside(old)
      return shown(content)
    } catch (error) {
      removeTree(fresh)
      throw error
    }
  }

  /**
   * Copies what servers have or are sent, without what is being written. By descriptors: servers are paused meanwhile, but a
   * hostile program evades that.
   */
  async #copyFinished(name: string, fresh: string, signal: AbortSignal | undefined): Promise<void> {
    const [{ copyTree, pinRoot }, { CACHES }] = await Promise.all([
      import('../../compute/trees.ts'),
      import('../../compute/remains.ts'),
    ])
    const to = join(fresh, name)
    mkdirSync(to, { mode: 0o700 })
    using root = pinRoot(join(this.#path, name), holdsInodes)
    try {
      // Right below a server's directory; its own files are further down.
      const isCache = (entry: string, depth: number): boolean =>
        name === SERVERS && depth === 1 && entry === CACHES
      await copyTree(root, to, signal, isCache)
    } catch (error) {
      throw signal?.aborted ? copyCancelled() : notCopied(messageOf(error))
    }
  }

  /**
   * Returns the facts about a snapshot that this berth can read.
   *
   * @throws BerthError 404, or 400 if it is damaged or a newer berth made it
   */
  check(name: string): SnapshotFile {
    if (!this.has(name)) throw notFound(`The snapshot ${JSON.stringify(name)}`)
    const file = this.#read(name)
    if (file === null) {
      throw badRequest(
        `The snapshot "${name}" cannot be read: its snapshot.json is damaged. Remove it with "berth snapshot rm ${name}".`,
      )
    }
    if (file.schema > SCHEMA) {
      throw badRequest(
        `The snapshot "${name}" was made by berth ${file.version} (schema ${file.schema}), which is newer than this one (schema ${SCHEMA}). Restore it with that version.`,
      )
    }
    return file
  }

  /**
   * Copies a snapshot's state into a directory.
   *
   * @param signal cancels it
   * @throws BerthError 404, or 400 if it is damaged or a newer berth made it
   */
  async copyTo(name: string, dir: string, signal?: AbortSignal): Promise<SnapshotFile> {
    const file = this.check(name)
    const place = join(this.#dir, name)
    // What is not state, such as a lock, is not a snapshot's to replace.
    const entries = stateEntries(place).filter((entry) => entry !== 'snapshot.json')
    await copyTrees(
      entries.map((entry) => join(place, entry)),
      dir,
      signal,
    )
    const strange = await findStrange(dir)
    if (strange !== null) throw badRequest(`The snapshot "${name}" is damaged: ${strange}.`)
    const damage = findDamage(join(dir, 'berth.db'))
    if (damage !== null) throw badRequest(`The snapshot "${name}" is damaged: its database ${damage}.`)
    return file
  }

  /**
   * Returns what differs between a snapshot and another one.
   *
   * @param to the name of the other one; null for the current state
   * @param copyDatabase writes a copy of the current database to a path that does not exist
   * @param pack packs the current files of a server that is elsewhere
   * @throws BerthError 404, or 400 if one is damaged or of a newer berth
   */
  async compare(
    from: string,
    to: string | null,
    copyDatabase: (path: string) => void,
    pack: ComparedState['pack'],
  ): Promise<StateDiff> {
    const before = this.#compared(from)
    const { compareStates } = await import('./compare.ts')
    if (to !== null) return compareStates(before, this.#compared(to))
    const copy = mkdtempSync(join(this.#dir, '.diff-'))
    try {
      const database = join(copy, 'berth.db')
      copyDatabase(database)
      return await compareStates(before, { database, servers: join(this.#path, SERVERS), pack })
    } finally {
      removeTree(copy)
    }
  }

  #compared(name: string): ComparedState {
    if (!this.has(name)) throw notFound(`The snapshot ${JSON.stringify(name)}`)
    const place = join(this.#dir, name)
    const database = join(place, 'berth.db')
    const isFile = lstatSync(database, { throwIfNoEntry: false })?.isFile() ?? false
    const damage = isFile ? findDamage(database, { onlyReads: true }) : 'is no file'
    if (damage !== null) throw badRequest(`The snapshot "${name}" is damaged: its database ${damage}.`)
    return { database, servers: join(place, SERVERS) }
  }

  /** Removes a snapshot. @throws BerthError 404 */
  async remove(name: string): Promise<void> {
    if (!this.has(name)) throw notFound(`The snapshot ${JSON.stringify(name)}`)
    // Renamed first, so an incomplete snapshot is never found.
    const gone = join(this.#dir, `.gone-${name}`)
    removeTree(gone)
    renameSync(join(this.#dir, name), gone)
    await removeTreeAside(gone)
  }

  /**
   * Removes the remains of a process that was killed while it saved, replaced or removed snapshots. Nothing else may be done to snapshots
   * until this resolves.
   */
  async sweep(): Promise<void> {
    if (!existsSync(this.#dir)) return
    const left = readdirSync(this.#dir)
    for (const name of left.flatMap((entry) => (entry.startsWith('.old-') ? [entry.slice(5)] : []))) {
      // The replacement was not complete, so the old snapshot stays.
      if (!left.includes(name)) renameSync(join(this.#dir, `.old-${name}`), join(this.#dir, name))
    }
    for (const name of readdirSync(this.#dir)) {
      if (name.startsWith('.')) await removeTreeAside(join(this.#dir, name))
    }
  }

  /** Reports whether there is a snapshot of a name, which may be damaged. */
  has(name: string): boolean {
    return NAME.test(name) && existsSync(join(this.#dir, name, 'snapshot.json'))
  }

  /** Returns null if the snapshot does not exist or is damaged. */
  #read(name: string): SnapshotFile | null {
    if (!this.has(name)) return null
    const path = join(this.#dir, name, 'snapshot.json')
    try {
      const stats = lstatSync(path)
      if (!stats.isFile() || stats.size > FILE_LIMIT) return null
      return JSON.parse(readFileSync(path, 'utf8')) as SnapshotFile
    } catch {
      return null
    }
  }
}

/** Parts of the path of a server's file below a state: `servers`, its id, `workspace`, and its name at least. */
const PARTS_OF_SERVER_FILE = 4

/** Parts of the path of a file that is prepared for a server elsewhere: `staged`, a directory and its name at least. */
const PARTS_OF_STAGED_FILE = 3

/** Reports whether a path below a state is that of a server's own file. */
function isOfServer(path: string): boolean {
  const parts = path.split(sep)
  if (parts[0] === STAGED) return parts.length >= PARTS_OF_STAGED_FILE
  return parts[0] === SERVERS && parts.length >= PARTS_OF_SERVER_FILE
}

/**
 * Describes the first entry in a copy of a state that berth does not make; null if there is none. What berth keeps itself is
 * files and directories, whose paths it follows. In the files of servers are links too, which berth follows nowhere out of
 * the workspace, but no devices: with some isolations a program could open them.
 */
async function findStrange(dir: string): Promise<string | null> {
  const left = ['']
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const entries = await readdir(join(dir, path), { withFileTypes: true }).catch((error) => {
      // Whom a server can close a directory to, can make no device in a copy of it either.
      if (codeOf(error) === 'EACCES' && path.startsWith(join(SERVERS, sep))) return []
      throw error
    })
    for (const entry of entries) {
      const place = join(path, entry.name)
      if (entry.isDirectory()) left.push(place)
      else if (entry.isFile()) continue
      else if (isOfServer(place)) {
        if (isDevice(entry, join(dir, place))) return `${place} is a device`
      } else if (entry.isSymbolicLink())
        return `${place} is a link, and would lead berth to files that are not the snapshot's`
      else return `${place} is neither a file nor a directory`
    }
  }
  return null
}

/** Reports whether an entry is a device. Programs of servers can make one with the number 0, which is not a device (mknod(2)). */
const isDevice = (entry: Dirent, path: string): boolean =>
  entry.isBlockDevice() || (entry.isCharacterDevice() && lstatSync(path).rdev !== 0)

const shown = ({ clock: _, ...rest }: SnapshotFile): Snapshot => rest

function checkName(name: string): void {
  if (NAME.test(name)) return
  throw badRequest(
    `"name" in the body: expected 1 to 100 letters, digits, dots, underscores and hyphens, with no dot first, got ${JSON.stringify(name)}.`,
  )
}

/** Returns the bytes that a directory takes on disk; its own entry's if `du` cannot measure it. */
async function bytesOf(dir: string): Promise<number> {
  const { stdout } = await runHelper(['du', '-s', '-k', '--', dir], { onStderr: () => {} })
  const kib = Number.parseInt(stdout, 10)
  return Number.isNaN(kib) ? statSync(dir).size : kib * 1024
}

/**
 * Saves the state under a name of its own before it is replaced, and removes the oldest snapshots of that kind.
 *
 * @param save keeps the state under a name
 * @param spared a snapshot that stays, because it is about to be restored
 * @returns the name
 * @throws BerthError whose message begins with `NOT_SAVED`
 */
export async function saveUndo(
  kind: UndoKind,
  snapshots: Snapshots,
  save: (name: string) => Promise<unknown>,
  spared?: string,
): Promise<string> {
  try {
    const all = snapshots.list().map((one) => one.name)
    const { name, surplus } = nextUndo(kind, all)
    await save(name)
    for (const old of surplus) if (old !== spared) await snapshots.remove(old)
    return name
  } catch (error) {
    if (error instanceof BerthError && error.code === 'service_unavailable') throw error
    const reason = isDiskFull(error)
      ? `the disk that holds berth's data directory is full. ${MAKE_ROOM}`
      : messageOf(error)
    throw new BerthError('internal_error', `${NOT_SAVED}: ${reason}`, { cause: error })
  }
}
