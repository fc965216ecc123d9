import { closeSync, readlinkSync, readSync } from 'node:fs'
import { readInto } from '../../runtime/descriptor-io.ts'
import { Pace } from '../../runtime/pace.ts'
import { type ManifestEntry, WorkspaceError } from '../workspace.ts'
import { canSkip, DirectoryChain } from './directories.ts'
import { identityOf } from './file.ts'
import { childPath, openForReading, type PinnedEntry, pinChild } from './pinned.ts'

/** Bytes that are read at a time. Smaller files are read by one call, which takes less time than the thread pool. */
const PIECE = 256 * 1024

/**
 * Describes files and links below a pinned directory, in the order of the paths. Follows no link. Leaves out paths at
 * which there is neither, and what may not be read.
 *
 * @param paths relative to the directory, separated by `/`; neighbours should follow each other
 */
export async function describeEntries(root: PinnedEntry, paths: readonly string[]): Promise<ManifestEntry[]> {
  using cursor = new TreeCursor(root)
  const pace = new Pace()
  const hashes = new FileHashes()
  const found: ManifestEntry[] = []
  for (const path of paths) {
    if (pace.due) await pace.rest()
    const names = path.split('/')
    const name = names.pop() ?? ''
    try {
      const entry = await describe(cursor.goTo(names), name, path, hashes)
      if (entry !== null) found.push(entry)
    } catch (error) {
      if (!canSkip(error)) throw error
    }
  }
  return found
}

async function describe(
  dir: PinnedEntry,
  name: string,
  path: string,
  hashes: FileHashes,
): Promise<ManifestEntry | null> {
  using entry = pinChild(dir, name)
  const { stats } = entry
  if (stats.isSymbolicLink()) {
    const target = readlinkSync(childPath(dir, name), 'utf8')
    return { kind: 'link', path, target }
  }
  if (!stats.isFile()) return null
  const { size, mode } = stats
  return { kind: 'file', path, size, sha256: await hashes.of(entry), executable: (mode & 0o100) !== 0 }
}

/** Bytes of holes in files that are hashed for one manifest, though they take no disk. @bound program */
const MAX_HOLES = 16 * 2 ** 30

/** The hashes of a tree's files. A file of several names is read once. */
class FileHashes {
  readonly #known = new Map<string, string>()
  #holes = 0

  /** Returns the SHA-256 of a file in hexadecimal. Throws `WorkspaceError` `too_large`, or the system's error. */
  async of(file: PinnedEntry): Promise<string> {
    const { nlink, size, blocks } = file.stats
    const identity = nlink > 1 ? identityOf(file.stats) : null
    const known = identity === null ? undefined : this.#known.get(identity)
    if (known !== undefined) return known
    this.#holes += Math.max(0, size - blocks * 512)
    if (this.#holes > MAX_HOLES) throw tooManyHoles()
    const hash = await digest(file)
    if (identity !== null) this.#known.set(identity, hash)
    return hash
  }
}

const tooManyHoles = (): WorkspaceError =>
  new WorkspaceError(
    'too_large',
    'The files have too large holes to be compared. Remove those that are larger than the disk they take.',
  )

/** Returns the SHA-256 of a file in hexadecimal. A file that grows meanwhile counts up to its size before. */
async function digest(file: PinnedEntry): Promise<string> {
  const descriptor = openForReading(file)
  try {
    const hash = new Bun.CryptoHasher('sha256')
    const { size } = file.stats
    const bytes = new Uint8Array(Math.min(size, PIECE))
    for (let position = 0; position < size; ) {
      const length = Math.min(PIECE, size - position)
      const count =
        size <= PIECE
          ? readSync(descriptor, bytes, 0, length, position)
          : await readInto(descriptor, bytes, 0, length, position)
      if (count === 0) break
      hash.update(bytes.subarray(0, count))
      position += count
    }
    return hash.digest('hex')
  } finally {
    closeSync(descriptor)
  }
}

/** Walks to directories of a tree, and keeps those on the way to the last one open. */
class TreeCursor implements Disposable {
  readonly #chain: DirectoryChain
  #names: string[] = []

  constructor(root: PinnedEntry) {
    this.#chain = new DirectoryChain(root)
  }

  /** Returns the directory of these names. Throws the system's error if there is none. */
  goTo(names: readonly string[]): PinnedEntry {
    let common = 0
    while (common < this.#names.length && this.#names[common] === names[common]) common += 1
    while (this.#names.length > common) {
      this.#chain.leave()
      this.#names.pop()
    }
    for (const name of names.slice(common)) {
      this.#chain.enter(name)
      this.#names.push(name)
    }
    return this.#chain.current
  }

  [Symbol.dispose](): void {
    this.#chain[Symbol.dispose]()
  }
}
