import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { FileManifest } from '../../resources/files/manifest.ts'
import { isGone } from '../../runtime/if-present.ts'
import { unreadable } from '../local-file.ts'
import type { DirectorySurvey, SurveyedFile } from './survey.ts'

/** Bytes of a large file that are read at a time. */
const PIECE = 4 * 1024 * 1024

/** Milliseconds of reading without a break, after which timers, signals and requests get their turn. */
const TURN_MS = 20

/**
 * Describes surveyed files by their content. Remembers the hash of a file until its size or a time of it changes, so a
 * second manifest of the same directory reads only what has changed. Reads are synchronous, which takes least time, with a
 * break now and then.
 */
export class ManifestReader {
  #turnBegan = 0
  readonly #known = new Map<string, { stamp: string; sha256: string }>()

  /**
   * Returns the manifest of a directory. Leaves out a file that another program has removed since the survey.
   *
   * @param onRead called with the number of bytes that have been read since the last call
   * @throws CommandError if a file cannot be read
   */
  async read(
    { root, files, links }: DirectorySurvey,
    onRead: (bytes: number) => void = () => {},
  ): Promise<FileManifest> {
    this.#turnBegan = performance.now()
    const described: FileManifest['files'] = []
    for (const file of files) {
      const sha256 = await this.#hashOf(root, file, onRead)
      const { path, size, isExecutable: executable } = file
      if (sha256 !== null) described.push({ path, size, sha256, executable })
    }
    return { files: described, links: links.map(({ path, target }) => ({ path, target })) }
  }

  async #hashOf(
    root: string,
    { path, size, modifiedAt, changedAt }: SurveyedFile,
    onRead: (bytes: number) => void,
  ): Promise<string | null> {
    const full = join(root, path)
    const stamp = `${size} ${modifiedAt} ${changedAt}`
    const known = this.#known.get(full)
    if (known?.stamp === stamp) return known.sha256
    try {
      const sha256 = await this.#digest(full, size, onRead)
      this.#known.set(full, { stamp, sha256 })
      return sha256
    } catch (error) {
      if (isGone(error)) return null
      throw unreadable(path, error)
    }
  }

  /** Returns the SHA-256 of a file in hexadecimal. One call reads a small file. */
  async #digest(path: string, size: number, onRead: (bytes: number) => void): Promise<string> {
    const hash = new Bun.CryptoHasher('sha256')
    if (size <= PIECE) {
      hash.update(readFileSync(path))
      onRead(size)
      await this.#takeTurns()
      return hash.digest('hex')
    }
    const descriptor = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(PIECE)
      for (let count = readSync(descriptor, bytes); count > 0; count = readSync(descriptor, bytes)) {
        hash.update(bytes.subarray(0, count))
        onRead(count)
        await this.#takeTurns()
      }
      return hash.digest('hex')
    } finally {
      closeSync(descriptor)
    }
  }

  /** Lets other work run if this has been running for long. */
  async #takeTurns(): Promise<void> {
    if (performance.now() - this.#turnBegan < TURN_MS) return
    await Bun.sleep(0)
    this.#turnBegan = performance.now()
  }
}
