import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { holdsInodes } from '../../system/files.ts'
import type { ServerHandle } from '../driver.ts'
import { filesElsewhere } from '../engine/names.ts'
import { ComputeError } from '../sandbox.ts'
import { pinRoot } from './pinned.ts'
import { STAGING, StagingArea } from './staging.ts'
import { removeTreeEntry } from './tree.ts'

/** The handle of a server on this machine. The directory is relative to the data directory, which may be moved. */
interface LocalHandle extends ServerHandle {
  readonly kind: 'local'
  readonly folder: string
}

/** A server's id, which is also a directory's name: nothing that leads elsewhere. */
const SERVER_ID = /^[A-Za-z0-9_-]{1,64}$/

/** Beginning of the name of a server's directory that is being made, before it has its id. */
const NEW = '.new-'

/** The file in a server's directory that says that nobody has been given the server: its creation is not complete. */
const MARK = 'unclaimed'

const WORKSPACE = 'workspace'

/** The name of a server's directory of caches, which no snapshot has. */
export const CACHES = 'caches'

/** The directories of servers, as they were when stock was taken. */
interface DirectoryStock {
  /** The ids of all. */
  readonly ids: readonly string[]
  /** Ids of those that no server owns and that stay. */
  readonly kept: readonly string[]
  /** Removes the others that no server owns, and what killed berths were preparing in those of servers. */
  remove(): Promise<void>
}

/**
 * The directories of one data directory's servers: `servers/<id>/workspace`. All isolations share them, so a server
 * can change its isolation.
 */
export class ServerDirectories {
  readonly #dataDir: string
  #marker: string | null = null
  /** Names of directories whose removal has failed, as without a free descriptor. */
  readonly #doomed = new Set<string>()

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  /** Makes an empty workspace, with the mark that nobody has been given it. Throws if there is such a directory already. */
  async create(serverId: string): Promise<LocalHandle> {
    const removal = this.#removeDoomed()
    if (this.#doomed.has(serverId)) await removal
    if (!SERVER_ID.test(serverId)) throw new ComputeError(`"${serverId}" cannot name a server's directory.`)
    const place = join(this.#servers, serverId)
    // A move that was killed may have left one.
    if (this.#isBlank(serverId)) await this.#remove(serverId)
    if (existsSync(place)) throw new ComputeError(`The directory ${place} exists already, and is kept.`)
    // Renamed when it is complete: a directory without the mark is never removed.
    const fresh = join(this.#servers, `${NEW}${serverId}`)
    mkdirSync(this.#servers, { recursive: true, mode: 0o700 })
    try {
      mkdirSync(fresh, { mode: 0o700 })
      writeFileSync(join(fresh, MARK), '', { mode: 0o600 })
      mkdirSync(join(fresh, WORKSPACE), { mode: 0o755 })
      renameSync(fresh, place)
    } catch (error) {
      rmSync(fresh, { recursive: true, force: true })
      throw error
    }
    return { kind: 'local', folder: `servers/${serverId}` }
  }

  /** Removes the mark that nobody has been given the server. */
  keep(handle: ServerHandle): void {
    rmSync(join(this.dir(handle), MARK), { force: true })
  }

  /** Returns the server's id. Throws `ComputeError` for a handle of another driver. */
  name(handle: ServerHandle): string {
    return nameOf(handle)
  }

  /** Returns absolute path of the server's own directory. Throws `ComputeError` for a handle of another driver. */
  dir(handle: ServerHandle): string {
    return join(this.#servers, nameOf(handle))
  }

  /** Returns absolute path of the server's workspace. */
  workspace(handle: ServerHandle): string {
    return join(this.dir(handle), WORKSPACE)
  }

  /** Returns the absolute path of the server's directory of caches. */
  caches(handle: ServerHandle): string {
    return join(this.dir(handle), CACHES)
  }

  /** Creates the directory of caches if it is missing, and returns its absolute path. */
  makeCaches(handle: ServerHandle): string {
    const path = this.caches(handle)
    mkdirSync(path, { recursive: true, mode: 0o755 })
    return path
  }

  /**
   * Removes the server's directory with everything in it, at any depth and with any permissions. One that cannot be
   * removed now goes with the next.
   */
  async destroy(handle: ServerHandle): Promise<void> {
    const name = nameOf(handle)
    try {
      await this.#remove(name)
    } catch (error) {
      this.#doomed.add(name)
      throw error
    }
    await this.#removeDoomed()
  }

  async #removeDoomed(): Promise<void> {
    for (const name of this.#doomed) {
      try {
        await this.#remove(name)
        this.#doomed.delete(name)
      } catch {
        // It may be possible later, and the next start does it too.
      }
    }
  }

  /**
   * Lists the directories. Those of servers stay, and so do those that may hold somebody's files: all without the mark, and
   * with the mark if they are not empty.
   *
   * @param servers those that have a record
   * @param deleted those that are removed elsewhere
   */
  takeStock(servers: readonly ServerHandle[], deleted: readonly ServerHandle[] = []): DirectoryStock {
    // Servers of other drivers have no directory here.
    const idsOf = (handles: readonly ServerHandle[]): Set<string> =>
      new Set(handles.flatMap((handle) => (isLocal(handle) ? [basename(handle.folder)] : [])))
    const owned = idsOf(servers)
    const doomed = idsOf(deleted)
    const names = this.names()
    const ids = names.filter((name) => !name.startsWith('.'))
    const ownerless = ids.filter((id) => !owned.has(id) && !doomed.has(id))
    const blank = new Set(ownerless.filter((id) => this.#isBlank(id)))
    const kept = ownerless.filter((id) => !blank.has(id))
    const removed = [...names.filter((name) => name.startsWith(NEW)), ...blank]
    const present = ids.filter((id) => owned.has(id))
    return {
      ids: [...new Set([...owned, ...doomed, ...ids])],
      kept,
      remove: async () => {
        for (const name of removed) await this.#remove(name)
        for (const id of present) {
          rmSync(join(this.#servers, id, MARK), { force: true })
          await new StagingArea(join(this.#servers, id, STAGING), holdsInodes).sweep()
        }
      },
    }
  }

  /** Returns the ids of all directories without the mark: somebody was given these servers. */
  claimed(): string[] {
    return this.names().filter(
      (name) => !name.startsWith('.') && !existsSync(join(this.#servers, name, MARK)),
    )
  }

  /** Returns the ids of all directories that may hold somebody's files: all without the mark, and those that are not empty. */
  holding(): string[] {
    return this.names().filter((name) => !name.startsWith('.') && !this.#isBlank(name))
  }

  /** Reports whether a directory has the mark and an empty workspace: nobody has a file there. */
  #isBlank(id: string): boolean {
    try {
      const dir = join(this.#servers, id)
      return existsSync(join(dir, MARK)) && readdirSync(join(dir, WORKSPACE)).length === 0
    } catch {
      // What cannot be looked into may hold files.
      return false
    }
  }

  /** Returns first 12 hex digits of the marker of every process that belongs to this data directory. */
  dataMarker(): string {
    this.#marker ??= dataMarkerOf(realpathSync(this.#dataDir))
    return this.#marker
  }

  /** Returns first 24 hex digits of the marker of every process of a server: data directory and server. */
  serverMarker(handle: ServerHandle): string {
    return serverMarkerOf(this.dataMarker(), nameOf(handle))
  }

  get #servers(): string {
    return join(this.#dataDir, 'servers')
  }

  /** Returns the names of all directories: of servers, and of what a killed berth was creating or removing. */
  names(): string[] {
    const entries = ifPresent(() => readdirSync(this.#servers, { withFileTypes: true })) ?? []
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  }

  async #remove(name: string): Promise<void> {
    if (!this.names().includes(name)) return
    // Nothing of the server runs anymore. The system's own rm takes a tree of any depth in one pass.
    const rm = Bun.spawn(['rm', '-rf', '--', join(this.#servers, name)], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    if ((await rm.exited) === 0) return
    using servers = pinRoot(this.#servers, holdsInodes)
    await removeTreeEntry(servers, name)
  }
}

function nameOf(handle: ServerHandle): string {
  if (!isLocal(handle)) throw filesElsewhere(handle, 'local')
  return basename(handle.folder)
}

const isLocal = (handle: ServerHandle): handle is LocalHandle =>
  handle.kind === 'local' && typeof handle.folder === 'string' && SERVER_ID.test(basename(handle.folder))

/** Returns first 12 hex digits of the marker of every process of a data directory. @param dataDir its real path */
export const dataMarkerOf = (dataDir: string): string => digest(dataDir)

/** Returns first 24 hex digits of the marker of every process of a server. */
export const serverMarkerOf = (dataMarker: string, serverId: string): string => dataMarker + digest(serverId)

function digest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 12)
}
