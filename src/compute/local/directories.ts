import { codeOf } from '../../runtime/error-info.ts'
import { Listing } from './listing.ts'
import { childPath, type EntryName, type PinnedEntry, pinChild } from './pinned.ts'

/**
 * Descriptors a walk holds at a time, however deep the tree: trees deeper than the limit of open files exist.
 * @bound system
 */
const MAX_HELD = 64

/**
 * The chain of directories from a pinned one down to a walk's current one. Releases directories far above and pins
 * them again by name on the way back, still without following links.
 */
export class DirectoryChain implements Disposable {
  readonly #chain: { name: EntryName; dir: PinnedEntry | null }[] = []
  /** The listing that was opened last. At most this one is open: a walk goes down only when a large directory is closed. */
  #listing: Listing | null = null

  /** `top` stays the caller's to dispose of. */
  constructor(private readonly top: PinnedEntry) {}

  /** The number of directories between the first one and the current one. */
  get depth(): number {
    return this.#chain.length
  }

  /** The walk's current directory. Throws the system's error if it has been moved away. */
  get current(): PinnedEntry {
    const last = this.#chain.length - 1
    let from = last
    while (from >= 0 && this.#chain[from]?.dir === null) from -= 1
    for (let index = from + 1; index <= last; index += 1) {
      const link = this.#chain[index]
      if (link === undefined) break
      link.dir = pinDirectory(this.#at(index - 1), link.name)
      this.#release(index - MAX_HELD)
    }
    return this.#at(last)
  }

  /** Lists the top or the current directory. Throws the system's error. */
  async list(dir: PinnedEntry): Promise<Listing> {
    this.#listing?.[Symbol.dispose]()
    this.#listing = await Listing.open(dir)
    return this.#listing
  }

  /** Steps down and returns the directory. Throws the system's error, `ENOTDIR` if the entry is not a directory. */
  enter(name: EntryName): PinnedEntry {
    const dir = pinDirectory(this.current, name)
    this.#chain.push({ name, dir })
    this.#release(this.#chain.length - 1 - MAX_HELD)
    return dir
  }

  /** Steps back up and returns the name of the directory it leaves. */
  leave(): EntryName {
    const left = this.#chain.pop()
    if (left === undefined) throw new Error('The walk is at its first directory.')
    left.dir?.[Symbol.dispose]()
    return left.name
  }

  [Symbol.dispose](): void {
    this.#listing?.[Symbol.dispose]()
    for (let index = 0; index < this.#chain.length; index += 1) this.#release(index)
  }

  #at(index: number): PinnedEntry {
    return this.#chain[index]?.dir ?? this.top
  }

  #release(index: number): void {
    const link = this.#chain[index]
    link?.dir?.[Symbol.dispose]()
    if (link !== undefined) link.dir = null
  }
}

function pinDirectory(dir: PinnedEntry, name: EntryName): PinnedEntry {
  const entry = pinChild(dir, name)
  if (entry.stats.isDirectory()) return entry
  entry[Symbol.dispose]()
  throw Object.assign(new Error(`${childPath(dir, name)} is not a directory`), { code: 'ENOTDIR' })
}

/**
 * Reports whether an error only means that a directory or a link vanished, was replaced, or may not be entered, so a walk
 * can skip it.
 */
export function canSkip(error: unknown): boolean {
  return SKIPPED.includes(codeOf(error))
}

/**
 * EINVAL is of a link that has become something else (readlink(2)), EAGAIN of a file that a program has reserved (F_SETLEASE
 * of fcntl(2)).
 */
const SKIPPED: readonly unknown[] = [
  ...['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'],
  ...['EINVAL', 'EAGAIN'],
]
