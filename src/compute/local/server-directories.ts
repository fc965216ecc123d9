import { mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { ComputeError } from '../compute-error.ts'
import type { Handle } from '../driver.ts'
import { pinRoot } from './pinned.ts'
import { STAGING, StagingArea } from './staging.ts'
import { removeEntry } from './tree.ts'

/** The handle of a server on this machine. The directory is relative to the data directory, which may be moved. */
interface LocalHandle extends Handle {
  readonly kind: 'local'
  readonly folder: string
}

/** A server's id, which is also a directory's name: nothing that leads elsewhere. */
const SERVER_ID = /^[A-Za-z0-9_-]{1,64}$/

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

  /** Makes an empty workspace. Throws if the server has one already. */
  async create(serverId: string): Promise<LocalHandle> {
    const removal = this.#removeDoomed()
    if (this.#doomed.has(serverId)) await removal
    if (!SERVER_ID.test(serverId)) throw new ComputeError(`"${serverId}" cannot name a server's directory.`)
    const folder = `servers/${serverId}`
    mkdirSync(this.#servers, { recursive: true, mode: 0o700 })
    mkdirSync(join(this.#dataDir, folder), { mode: 0o700 })
    mkdirSync(join(this.#dataDir, folder, 'workspace'), { mode: 0o755 })
    return { kind: 'local', folder }
  }

  /** Returns the server's id. Throws `ComputeError` for a handle of another driver. */
  name(handle: Handle): string {
    return nameOf(handle)
  }

  /** Returns absolute path of the server's own directory. Throws `ComputeError` for a handle of another driver. */
  dir(handle: Handle): string {
    return join(this.#servers, nameOf(handle))
  }

  /** Returns absolute path of the server's workspace. */
  workspace(handle: Handle): string {
    return join(this.dir(handle), 'workspace')
  }

  /**
   * Removes the server's directory with everything in it, at any depth and with any permissions. One that cannot be
   * removed now goes with the next.
   */
  async destroy(handle: Handle): Promise<void> {
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
   * Removes the directories of all other servers, and what a killed berth was preparing in these servers'
   * directories.
   */
  async sweep(known: readonly Handle[]): Promise<void> {
    const kept = new Set(known.map(nameOf))
    for (const name of this.names()) {
      if (!kept.has(name)) await this.#remove(name)
      else await new StagingArea(join(this.#servers, name, STAGING), process.platform === 'linux').sweep()
    }
  }

  /** Returns first 12 hex digits of the marker of every process that belongs to this data directory. */
  dataMarker(): string {
    this.#marker ??= dataMarkerOf(realpathSync(this.#dataDir))
    return this.#marker
  }

  /** Returns first 24 hex digits of the marker of every process of a server: data directory and server. */
  serverMarker(handle: Handle): string {
    return serverMarkerOf(this.dataMarker(), nameOf(handle))
  }

  get #servers(): string {
    return join(this.#dataDir, 'servers')
  }

  /** Returns the names of all directories: of servers, and of what a killed berth was creating or removing. */
  names(): string[] {
    return ifPresent(() => readdirSync(this.#servers)) ?? []
  }

  async #remove(name: string): Promise<void> {
    if (!this.names().includes(name)) return
    // Nothing of the server runs anymore. The system's own rm takes a tree of any depth in one pass.
    const rm = Bun.spawn(['rm', '-rf', '--', join(this.#servers, name)], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    if ((await rm.exited) === 0) return
    using servers = pinRoot(this.#servers, process.platform === 'linux')
    await removeEntry(servers, name)
  }
}

function nameOf({ kind, folder }: Handle): string {
  if (kind !== 'local' || typeof folder !== 'string' || !SERVER_ID.test(basename(folder))) {
    throw new ComputeError('The server was made by another compute driver, which this berth does not have.')
  }
  return basename(folder)
}

/** Returns first 12 hex digits of the marker of every process of a data directory. @param dataDir its real path */
export const dataMarkerOf = (dataDir: string): string => digest(dataDir)

/** Returns first 24 hex digits of the marker of every process of a server. */
export const serverMarkerOf = (dataMarker: string, serverId: string): string => dataMarker + digest(serverId)

function digest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 12)
}
