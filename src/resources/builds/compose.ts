import { join } from 'node:path'
import { once } from '../../runtime/once.ts'
import type { ServerFollower } from '../servers/follower.ts'
import type { Assembled } from './assemble.ts'
import type { BuildParts } from './parts.ts'
import { BuildRecords } from './records.ts'
import type { BuildsService } from './service.ts'

/** How long berth waits at its end for builds that it has ended. */
const PATIENCE_MS = 1_000

/** The way to builds: a start waits for none of it, and a server without any stops as if there were no such thing. */
export class BuildsEntry implements ServerFollower {
  readonly #parts: BuildParts
  readonly #records: BuildRecords
  readonly #logFolder: string
  readonly #load: () => Promise<Assembled>
  #loaded: Assembled | null = null
  #stopped = false

  constructor(parts: BuildParts) {
    this.#parts = parts
    this.#records = new BuildRecords(parts)
    this.#logFolder = join(parts.dataDir, 'logs', 'builds')
    this.#load = once(async () => {
      const { assemble } = await import('./assemble.ts')
      this.#loaded = assemble({ ...parts, records: this.#records, logFolder: this.#logFolder })
      return this.#loaded
    })
  }

  /** The builds. */
  readonly service = async (): Promise<BuildsService> => (await this.#load()).service

  /** Says of those that a killed berth was in the middle of that they are over. Call it before anybody can ask. */
  async recover(): Promise<void> {
    const left = this.#records.unfinished()
    if (left.length === 0) return
    const { recover } = await this.#load()
    await recover(left.filter(({ status }) => status === 'running'))
  }

  /** Goes on with those that wait. The servers of before run again. */
  async resume(): Promise<void> {
    const servers = new Set(this.#records.unfinished().map(({ serverId }) => serverId))
    if (servers.size === 0 || this.#stopped) return
    const { queue } = await this.#load()
    for (const serverId of servers) queue.go(serverId)
  }

  /** Ends what runs; what waits goes on at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#loaded === null) return
    const { service, queue, logs } = this.#loaded
    service.stop()
    for (const row of this.#records.unfinished()) {
      if (row.status !== 'running') continue
      this.#records.ends(row, null)
      logs.conclude(row, 'berth was stopped while the build ran.')
    }
    queue.stop()
  }

  /** Resolves when nothing of builds runs any more. The servers have stopped. */
  async close(): Promise<void> {
    if (this.#loaded === null) return
    const { queue, logs } = this.#loaded
    await Promise.race([queue.settled(), Bun.sleep(PATIENCE_MS)])
    await logs.finishAll()
  }

  started(): void {}

  stopping(serverId: string): void {
    // The end of berth leaves what waits for the next start.
    if (this.#stopped) return
    try {
      this.#endAll(serverId)
    } catch (error) {
      // The server stops all the same.
      this.#parts.logger.error('the end of builds could not be written', { serverId, error })
    }
    this.#loaded?.queue.abort(serverId)
  }

  removing(): void {}

  async removed(serverId: string): Promise<void> {
    if (this.#loaded === null) {
      const { rm } = await import('node:fs/promises')
      return rm(join(this.#logFolder, serverId), { recursive: true, force: true })
    }
    // What runs was told to end, and may wait for the server's turn itself: it is not waited for.
    await this.#loaded.logs.remove(serverId)
  }

  #endAll(serverId: string): void {
    const left = this.#records.unfinished(serverId)
    const reason = left.length === 0 ? '' : this.#reasonOf(serverId)
    for (const row of left) {
      this.#records.ends(row, null)
      const said = row.status === 'running' ? 'while the build ran' : 'while the build waited for its turn'
      const tell = ({ logs }: Assembled): void => {
        logs.conclude(row, `${reason} ${said}.`)
        if (row.status === 'queued') void logs.finish(row)
      }
      if (this.#loaded) tell(this.#loaded)
      else void this.#load().then(tell)
    }
  }

  #reasonOf(serverId: string): string {
    const { servers, metering } = this.#parts
    const row = servers.find(serverId)
    if (row !== undefined && metering.isCapped(row.accountId)) {
      return 'The budget of the account was used up, and its servers were put to sleep,'
    }
    if (servers.sandbox(serverId) === undefined)
      return 'The server ended by itself, or did not come up again,'
    return 'The server was stopped'
  }
}
