import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Size of a read in search of a file's last lines, in bytes. */
const CHUNK = 64 * 1024

const NEW_LINE = 0x0a

/** Lines in a file, and earlier ones in a second file: together at most twice the limit. */
export class AppLogFile {
  readonly #path: string
  readonly #limit: number
  #size: number | null = null

  /**
   * @param path of the newer file; the older one has the suffix `.1`
   * @param limit of each file, in bytes
   */
  constructor(path: string, limit: number) {
    this.#path = path
    this.#limit = limit
  }

  /**
   * Appends complete lines, each with its line end.
   *
   * @throws the system's error, for example if the disk is full
   */
  async append(text: string): Promise<void> {
    const bytes = Buffer.from(text)
    try {
      this.#size ??= await this.#prepare()
      if (this.#size > 0 && this.#size + bytes.length > this.#limit) {
        await rename(this.#path, this.#older)
        this.#size = 0
      }
      await appendFile(this.#path, bytes, { mode: 0o600 })
      this.#size += bytes.length
    } catch (error) {
      this.#size = null
      throw error
    }
  }

  /** Returns the last `n` entries, oldest first; only those of one worker if its name is given. */
  async tail(n: number, worker?: string): Promise<LogEntry[]> {
    const newer = await lastEntries(this.#path, n, worker)
    if (newer.length >= n) return newer
    return [...(await lastEntries(this.#older, n - newer.length, worker)), ...newer]
  }

  /** Removes both files. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true })
    await rm(this.#older, { force: true })
    this.#size = null
  }

  get #older(): string {
    return `${this.#path}.1`
  }

  /** Creates the directory, ends a line that a crash left incomplete, and returns the file's size in bytes. */
  async #prepare(): Promise<number> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const file = await open(this.#path, 'a+', 0o600)
    try {
      const { size } = await file.stat()
      const last = Buffer.alloc(1)
      if (size > 0) await file.read(last, 0, 1, size - 1)
      if (size === 0 || last[0] === NEW_LINE) return size
      await file.appendFile('\n')
      return size + 1
    } finally {
      await file.close()
    }
  }
}

/** Returns a file's last entries, of one worker if its name is given. Skips invalid lines. */
async function lastEntries(path: string, n: number, worker?: string): Promise<LogEntry[]> {
  if (n <= 0) return []
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (file === null) return []
  try {
    let at = (await file.stat()).size
    const chunks: Buffer[] = []
    let lines = 0
    for (;;) {
      const chunk = Buffer.alloc(Math.min(CHUNK, at))
      at -= chunk.length
      await file.read(chunk, 0, chunk.length, at)
      chunks.unshift(chunk)
      for (const byte of chunk) if (byte === NEW_LINE) lines += 1
      // How far back the lines of one worker begin is not known.
      if (at > 0 && (lines <= n || worker !== undefined)) continue
      const texts = Buffer.concat(chunks).toString('utf8').split('\n')
      // Unless read from the file's start, the first line is incomplete.
      const entries = (at > 0 ? texts.slice(1) : texts)
        .flatMap((line) => parseEntry(line) ?? [])
        .filter((entry) => worker === undefined || entry.worker === worker)
      if (at === 0 || entries.length >= n) return entries.slice(-n)
    }
  } finally {
    await file.close()
  }
}

/** Origin of a log line; `berth` for berth's own messages. */
export type LogSource =
  | 'fetch'
  | 'install'
  | 'build'
  | 'release'
  | 'app'
  | 'worker'
  | 'berth'
  // Phases of builds.
  | 'plan'
  | 'scaffold'
  | 'implement'
  | 'deploy'

/** Which of a log's entries are wanted. */
export interface LogSelection {
  /** How many of the last entries. */
  readonly tail: number
  /** Only those since this time, in milliseconds since 1970. */
  readonly since?: number | null
  /** Only those with a higher `seq`. */
  readonly after?: number
  /** Only those that a worker of this name has printed. */
  readonly worker?: string | undefined
}

/** One line of an app's log. */
export interface LogEntry {
  /** Counts up over all lines of the log, forever. */
  readonly seq: number
  /** ISO 8601, by the clock. */
  readonly at: string
  readonly source: LogSource
  /** Name of the worker that printed the line. */
  readonly worker?: string
  /** Missing for berth's own messages. */
  readonly stream?: 'stdout' | 'stderr'
  /** Set if the line says that a bring-up has come to a phase. */
  readonly phase?: string
  /** Id of that bring-up. */
  readonly run?: string
  /** Without line end, control characters and secrets. */
  readonly text: string
}

/** Parses an entry as stored on disk; returns null for an invalid line, which a crash may leave. */
export function parseEntry(line: string): LogEntry | null {
  if (line === '') return null
  try {
    const { seq, at, source, worker, stream, phase, run, text } = JSON.parse(line) as Partial<LogEntry>
    if (typeof seq !== 'number' || typeof at !== 'string' || typeof source !== 'string') return null
    if (typeof text !== 'string') return null
    return {
      ...{ seq, at, source },
      ...(worker === undefined ? {} : { worker }),
      ...(stream === undefined ? {} : { stream }),
      ...(phase === undefined ? {} : { phase }),
      ...(run === undefined ? {} : { run }),
      text,
    }
  } catch {
    return null
  }
}
