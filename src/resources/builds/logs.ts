import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogEntry, LogSelection } from '../../hosting/app.ts'
import { AppLog } from '../../hosting/app.ts'
import type { SendEvent } from '../../http/sse.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Masks } from '../../runtime/masks.ts'
import type { RecordedLine, Recorder } from '../../runtime/recorder.ts'
import { MAX_TAIL } from '../logs/model.ts'
import { sendLine } from '../logs/readable-log.ts'
import type { BuildRow } from './table.ts'

/** Number of a server's builds whose logs are kept. @bound client */
export const MAX_LOGS_KEPT = 20

/** Identifies a build's log. */
type BuildRef = Pick<BuildRow, 'id' | 'serverId'>

/** Dependencies of the logs. */
interface LogsDependencies {
  clock: Clock
  logger: Logger
  /** Absolute path of the directory of all builds' logs. */
  directory: string
  /** Takes the lines of all logs; null if nothing is recorded. */
  recorder: Recorder | null
}

/** Stores one log per build, in one directory per server. */
export class BuildLogs {
  readonly #dependencies: LogsDependencies
  /** Logs of unfinished builds, by build id. */
  readonly #openLogs = new Map<string, { serverId: string; log: Promise<AppLog> }>()

  constructor(dependencies: LogsDependencies) {
    this.#dependencies = dependencies
  }

  /** Returns the log of an unfinished build: the same object until `close`. */
  open(build: BuildRef): Promise<AppLog> {
    const present = this.#openLogs.get(build.id)
    if (present) return present.log
    const log = this.#read(build)
    log.catch(() => this.#openLogs.delete(build.id))
    this.#openLogs.set(build.id, { serverId: build.serverId, log })
    return log
  }

  /** Adds a line of berth's own to a build's log. */
  append(build: BuildRef, text: string): void {
    this.#useLog(build, (log) => log.append('berth', text))
  }

  /** Adds the last line of a build that was ended from outside. The log drops lines that come after it. */
  appendLast(build: BuildRef, text: string): void {
    this.#useLog(build, (log) => {
      log.append('berth', text)
      log.seal()
    })
  }

  /** Closes the log of a build: writes pending entries and ends the streams of readers. */
  async close(build: BuildRef): Promise<void> {
    const open = this.#openLogs.get(build.id)
    if (open === undefined) return
    await open.log.then((log) => log.close()).catch(() => {})
    if (this.#openLogs.get(build.id) === open) this.#openLogs.delete(build.id)
  }

  /** Closes all logs. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#openLogs].map(([id, { serverId }]) => this.close({ id, serverId })))
  }

  /** Returns the selected entries, oldest first. */
  async select(build: BuildRef, selection: LogSelection): Promise<LogEntry[]> {
    return (await (this.#openLogs.get(build.id)?.log ?? this.#read(build))).select(selection)
  }

  /**
   * Sends the selected entries as `line` events, then new ones, until the build has ended or the reader disconnects.
   */
  async follow(
    build: BuildRow,
    selection: LogSelection,
    signal: AbortSignal,
    send: SendEvent,
  ): Promise<void> {
    let last = 0
    const sendEntry = (entry: LogEntry) => {
      last = entry.seq
      return sendLine(send, entry)
    }
    const isOver = build.status === 'completed' && !this.#openLogs.has(build.id)
    if (!isOver) {
      const log = await this.open(build)
      await log.subscribe(signal, selection, (event) =>
        event.kind === 'entry' ? sendEntry(event.entry) : send('dropped', { lines: event.entries }),
      )
    }
    // The build may have ended before its last lines were sent.
    const rest = last === 0 ? selection : { ...selection, tail: MAX_TAIL }
    const left = (await this.select(build, rest)).filter(({ seq }) => seq > last)
    for (const entry of left) if (!signal.aborted) await sendEntry(entry)
  }

  /** Removes the logs of a server's builds, except those of `ids` and of unfinished builds. */
  async keepOnly(serverId: string, ids: readonly string[]): Promise<void> {
    const directory = this.#directoryOf(serverId)
    const kept = new Set(ids)
    const names = await readdir(directory).catch(() => [])
    const old = names.filter((id) => !kept.has(id) && !this.#openLogs.has(id))
    const removing = old.map((id) => rm(join(directory, id), { recursive: true, force: true }))
    await Promise.all(removing).catch((error) =>
      this.#dependencies.logger.warn('logs of old builds cannot be removed', { serverId, error }),
    )
  }

  /** Removes the logs of a deleted server. */
  async remove(serverId: string): Promise<void> {
    const open = [...this.#openLogs].filter(([, one]) => one.serverId === serverId)
    await Promise.all(open.map(([id]) => this.close({ id, serverId })))
    await rm(this.#directoryOf(serverId), { recursive: true, force: true })
  }

  /** Removes the logs of deleted servers that a killed berth left. */
  async removeOrphans(exists: (serverId: string) => boolean): Promise<void> {
    const names = await readdir(this.#dependencies.directory).catch(() => [])
    await Promise.all(names.filter((id) => !exists(id)).map((id) => this.remove(id)))
  }

  #useLog(build: BuildRef, use: (log: AppLog) => void): void {
    const { logger } = this.#dependencies
    this.open(build)
      .then(use)
      .catch((error) => logger.warn("a build's log cannot be written", { buildId: build.id, error }))
  }

  async #read({ id, serverId }: BuildRef): Promise<AppLog> {
    const { clock, logger, recorder } = this.#dependencies
    const dir = join(this.#directoryOf(serverId), id)
    const record = recorder && ((line: RecordedLine) => recorder.logLine(id, line))
    const log = await AppLog.open({ dir, clock, logger, masks: new Masks(), ...(record && { record }) })
    log.beginRun(id)
    return log
  }

  #directoryOf(serverId: string): string {
    return join(this.#dependencies.directory, serverId)
  }
}
