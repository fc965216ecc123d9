import { closeSync, type Stats } from 'node:fs'
import { COPY_CHUNK, readInto } from '../../runtime/descriptor-io.ts'
import { codeOf } from '../../runtime/error-info.ts'
import type { WorkspaceFile } from '../workspace.ts'
import { openForReading, type PinnedEntry } from './pinned.ts'
import { toWorkspaceError } from './resolve-path.ts'
import { missing } from './workspace-path.ts'

/** A regular file of a workspace, pinned; it is opened for reading when it is first read. See `WorkspaceFile`. */
export class PinnedFile implements WorkspaceFile {
  readonly size: number
  readonly mode: number
  readonly modifiedAt: number
  readonly #stats: Stats
  readonly #entry: PinnedEntry
  #descriptor: number | null = null
  #reading = 0
  #disposed = false

  /** @param entry a regular file; it is disposed of with this @param path for messages */
  constructor(
    entry: PinnedEntry,
    private readonly path: string,
  ) {
    this.#entry = entry
    this.#stats = entry.stats
    this.size = entry.stats.size
    this.mode = entry.stats.mode & 0o777
    this.modifiedAt = entry.stats.mtimeMs
  }

  get identity(): string {
    return identityOf(this.#stats)
  }

  get changedAt(): number {
    return this.#stats.ctimeMs
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const descriptor = this.#openDescriptor()
    const bytes = new Uint8Array(length)
    let filled = 0
    this.#reading += 1
    try {
      while (filled < length) {
        const most = Math.min(COPY_CHUNK, length - filled)
        const bytesRead = await readInto(descriptor, bytes, filled, most, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
    } finally {
      this.#reading -= 1
      this.#close()
    }
    return filled === length ? bytes : bytes.subarray(0, filled)
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    this.#close()
  }

  #openDescriptor(): number {
    try {
      const descriptor = this.#descriptor ?? openForReading(this.#entry)
      this.#descriptor = descriptor
      return descriptor
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? missing(this.path) : toWorkspaceError(error, this.path)
    }
  }

  /** Not while it is read: its descriptor could name another file by then. */
  #close(): void {
    if (!this.#disposed || this.#reading > 0) return
    this.#entry[Symbol.dispose]()
    if (this.#descriptor !== null) closeSync(this.#descriptor)
    this.#descriptor = null
  }
}

/** See `WorkspaceFile.identity`. */
export const identityOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string =>
  `${dev}-${ino}-${size}-${mtimeMs}-${ctimeMs}`
