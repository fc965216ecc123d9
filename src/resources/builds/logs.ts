import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogEntry } from '../../hosting/app-runtime/log/entry.ts'
import { AppLog } from '../../hosting/app-runtime/log/log.ts'
import type { SendEvent } from '../../http/sse.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Masks } from '../../runtime/masks.ts'
import type { BuildRow } from './table.ts'

/** Builds of a server whose logs are kept. */
export const LOGS_KEPT = 20

/** As many entries as a log gives at once. */
const ALL_ENTRIES = 10_000

/** Which log is meant. */
type Of = Pick<BuildRow, 'id' | 'serverId'>

/** Dependencies of the logs. */
interface LogsDependencies {
  clock: Clock
  logger: Logger
  /** Absolute path of the folder of all builds' logs. */
  folder: string
}

/** The logs of builds on disk: one each, in a folder for each server. */
export class BuildLogs {
  readonly #dependencies: LogsDependencies
  /** Those of builds that are not over. */
  readonly #open = new Map<string, { serverId: string; log: Promise<AppLog> }>()

  constructor(dependencies: LogsDependencies) {
    this.#dependencies = dependencies
  }

  /** The log of a build that is not over; everybody is given the same, until `finish`. */
  of(build: Of): Promise<AppLog> {
    const present = this.#open.get(build.id)
    if (present) return present.log
    const log = this.#read(build)
    log.catch(() => this.#open.delete(build.id))
    this.#open.set(build.id, { serverId: build.serverId, log })
    return log
  }

  /** Adds a line of berth's own to a build's log. */
  note(build: Of, text: string): void {
    this.#with(build, (log) => log.append('berth', text))
  }

  /** Says why a build is over that was ended from outside: whatever of it still runs adds nothing more. */
  conclude(build: Of, text: string): void {
    this.#with(build, (log) => {
      log.append('berth', text)
      log.seal()
    })
  }

  /** Ends the log of a build: writes what was logged, and ends the streams of readers. */
  async finish(build: Of): Promise<void> {
    const open = this.#open.get(build.id)
    if (open === undefined) return
    await open.log.then((log) => log.close()).catch(() => {})
    if (this.#open.get(build.id) === open) this.#open.delete(build.id)
  }

  /** Writes all logs. */
  async finishAll(): Promise<void> {
    await Promise.all([...this.#open].map(([id, { serverId }]) => this.finish({ id, serverId })))
  }

  /** The last `n` entries, oldest first. */
  async tail(build: Of, n: number): Promise<LogEntry[]> {
    return (await (this.#open.get(build.id)?.log ?? this.#read(build))).tail(n)
  }

  /**
   * Sends the last `n` entries as `line` events and then new ones, until the build has ended or the reader
   * disconnects.
   */
  async follow(build: BuildRow, n: number, gone: AbortSignal, send: SendEvent): Promise<void> {
    let last = 0
    const sendEntry = (entry: LogEntry) => {
      last = entry.seq
      return send('line', entry)
    }
    const isOver = build.status === 'completed' && !this.#open.has(build.id)
    if (!isOver) {
      const log = await this.of(build)
      await log.subscribe(gone, n, (event) =>
        event.kind === 'entry' ? sendEntry(event.entry) : send('dropped', { lines: event.entries }),
      )
    }
    // The end may have come faster than its last lines were sent.
    const left = (await this.tail(build, last === 0 ? n : ALL_ENTRIES)).filter(({ seq }) => seq > last)
    for (const entry of left) if (!gone.aborted) await sendEntry(entry)
  }

  /** Removes the logs of a server's builds, but for these. */
  async keepOnly(serverId: string, ids: readonly string[]): Promise<void> {
    const folder = this.#folderOf(serverId)
    const kept = new Set(ids)
    const names = await readdir(folder).catch(() => [])
    const old = names.filter((id) => !kept.has(id) && !this.#open.has(id))
    const removing = old.map((id) => rm(join(folder, id), { recursive: true, force: true }))
    await Promise.all(removing).catch((error) =>
      this.#dependencies.logger.warn('logs of old builds cannot be removed', { serverId, error }),
    )
  }

  /** Removes the logs of a deleted server. */
  async remove(serverId: string): Promise<void> {
    const open = [...this.#open].filter(([, one]) => one.serverId === serverId)
    await Promise.all(open.map(([id]) => this.finish({ id, serverId })))
    await rm(this.#folderOf(serverId), { recursive: true, force: true })
  }

  /** Removes the logs of servers that no longer exist, as a killed berth may leave them. */
  async sweep(exists: (serverId: string) => boolean): Promise<void> {
    const names = await readdir(this.#dependencies.folder).catch(() => [])
    await Promise.all(names.filter((id) => !exists(id)).map((id) => this.remove(id)))
  }

  #with(build: Of, use: (log: AppLog) => void): void {
    const { logger } = this.#dependencies
    this.of(build)
      .then(use)
      .catch((error) => logger.warn("a build's log cannot be written", { buildId: build.id, error }))
  }

  async #read({ id, serverId }: Of): Promise<AppLog> {
    const { clock, logger } = this.#dependencies
    const dir = join(this.#folderOf(serverId), id)
    const log = await AppLog.open({ dir, clock, logger, masks: new Masks() })
    log.beginRun(id)
    return log
  }

  #folderOf(serverId: string): string {
    return join(this.#dependencies.folder, serverId)
  }
}
