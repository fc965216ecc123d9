import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type LogEntry, parseEntry } from './entry.ts'

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
