import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Isolation } from '../../config/config.ts'
import { isGone } from '../../runtime/if-present.ts'
import {
  type ComputeDriver,
  ComputeError,
  type Connection,
  type Handle,
  type Limits,
  type Probe,
  type Sandbox,
} from '../driver.ts'
import { chooseLimiter } from '../limits/choose.ts'
import type { Limiter } from '../limits/limiter.ts'
import { findMarked } from '../processes.ts'
import { killAll } from '../terminate.ts'
import type { Workspace } from '../workspace.ts'
import { DiskWatch } from './disk-watch.ts'
import { LocalSandbox } from './sandbox.ts'
import { ServerFolders } from './server-folders.ts'
import type { LocalDriverOptions, Tier } from './tier.ts'

/** Runs servers as processes of this machine; the tier decides how they are isolated. */
export class LocalDriver implements ComputeDriver {
  readonly #tier: Tier
  readonly #options: LocalDriverOptions
  readonly #folders: ServerFolders
  #limiter: Promise<Limiter> | null = null

  constructor(tier: Tier, options: LocalDriverOptions) {
    this.#tier = tier
    this.#options = options
    this.#folders = new ServerFolders(options.dataDir)
  }

  get name(): Isolation {
    return this.#tier.name
  }

  async probe(): Promise<Probe> {
    try {
      const result = await this.#tier.probe()
      if (!result.available) return result
      const { network, notes } = result
      return {
        available: true,
        enforced: async () => {
          const { enforced } = await this.#chosenLimiter()
          return { isolation: this.name, ...enforced, disk: 'watchdog', network }
        },
        ...(notes === undefined || notes.length === 0 ? {} : { notes }),
      }
    } catch (error) {
      const reason = `Its probe failed: ${messageOf(error)}`
      return { available: false, reason, remedy: 'Run `berth doctor` and look at the log.' }
    }
  }

  create(serverId: string): Promise<Handle> {
    return this.#folders.create(serverId)
  }

  async start(serverId: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    const { logger } = this.#options
    try {
      const sandbox = await this.#launch(serverId, handle, limits)
      const usage = (): Promise<number> => this.#usage(handle)
      const watch = new DiskWatch({ limit: limits.storageBytes, usage, sandbox, logger })
      watch.start()
      sandbox.mishaps.storageWatch = watch
      return sandbox
    } catch (error) {
      if (error instanceof ComputeError) throw error
      throw new ComputeError(`The server does not start: ${messageOf(error)}`, { cause: error })
    }
  }

  workspace(handle: Handle): Workspace {
    return this.#options.workspace(this.#folders.workspace(handle))
  }

  async reap(handles: Handle[]): Promise<void> {
    if (handles.length === 0) return
    const markers = new Set(handles.map((handle) => this.#folders.serverMarker(handle)))
    await killAll(() => findMarked(markers))
    const limiter = await this.#chosenLimiter()
    await limiter.sweep(handles.map((handle) => this.#folders.name(handle)))
  }

  destroy(handle: Handle): Promise<void> {
    return this.#folders.destroy(handle)
  }

  sweep(known: Handle[]): Promise<void> {
    return this.#folders.sweep(known)
  }

  async isSentFromServer(connection: Connection): Promise<boolean> {
    const { isSentFromServer } = await import('./sender.ts')
    return isSentFromServer(connection)
  }

  /** What all that the server can write to takes: its workspace, and its temporary folder where that lies on disk. */
  async #usage(handle: Handle): Promise<number> {
    const temporary = join(this.#folders.folder(handle), 'tmp')
    const inTemporary = await this.#options
      .workspace(temporary)
      .usage()
      .catch((error: unknown) => {
        if (isGone(error)) return 0
        throw error
      })
    return (await this.workspace(handle).usage()) + inTemporary
  }

  async #launch(id: string, handle: Handle, limits: Limits): Promise<LocalSandbox> {
    const folder = this.#folders.folder(handle)
    const workspace = this.#folders.workspace(handle)
    if (!lstatSync(workspace, { throwIfNoEntry: false })?.isDirectory()) {
      throw new ComputeError(`The server's files are gone: there is no folder ${workspace}.`)
    }
    const marker = this.#folders.serverMarker(handle)
    const launch = await this.#tier.launch({ id, folder, workspace, marker, limits })
    const limiter = await this.#chosenLimiter()
    const group = limiter.open(id, limits)
    try {
      const memoryHeldBy = limiter.enforced.memory
      return await LocalSandbox.start({ launch, marker, group, limits, memoryHeldBy })
    } catch (error) {
      await group.close()
      throw error
    }
  }

  /** Whoever needs limits also clears away what berths that were killed left of theirs. */
  async #chooseLimiter(): Promise<Limiter> {
    const limiter = await chooseLimiter(this.#folders.dataMarker(), this.#tier.userNamespace)
    await limiter.sweep([])
    return limiter
  }

  #chosenLimiter(): Promise<Limiter> {
    this.#limiter ??= this.#chooseLimiter()
    return this.#limiter
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
