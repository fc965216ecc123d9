import { type Dirent, readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { codeOf } from '../../runtime/error-info.ts'
import { childPath, type EntryName, type PinnedEntry, pinChild } from './pinned.ts'

/** Descriptors a walk holds at a time, however deep the tree: trees deeper than the limit of open files exist. */
const MAX_HELD = 64
/** Size of a directory itself, in bytes, from which reading it takes longer than a turn through the thread pool. */
const LARGE_DIRECTORY = 128 * 1024

/** An entry as its directory lists it. It is only a hint: the entry may change at any time. */
export interface ListedEntry {
  name: EntryName
  kind: 'file' | 'directory' | 'other'
}

/**
 * The chain of directories from a pinned one down to a walk's current one. Releases directories far above and pins
 * them again by name on the way back, still without following links.
 */
export class DirectoryChain implements Disposable {
  readonly #chain: { name: EntryName; dir: PinnedEntry | null }[] = []

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

/** Lists a pinned directory, in no particular order. Throws the system's error. */
export async function readDirectory(dir: PinnedEntry): Promise<ListedEntry[]> {
  const options = { withFileTypes: true } as const
  const large = dir.stats.size >= LARGE_DIRECTORY
  return listed(dir, large ? await readdir(dir.path, options) : readdirSync(dir.path, options))
}

function listed(dir: PinnedEntry, entries: Dirent[]): ListedEntry[] {
  const known: ListedEntry[] = []
  let unclear = false
  for (const entry of entries) {
    // A name that is not UTF-8 arrives with U+FFFD in it: only its bytes lead to the file.
    if (entry.name.includes('\uFFFD')) unclear = true
    else known.push({ name: entry.name, kind: kindOf(dir, entry.name, entry) })
  }
  if (unclear) {
    for (const bytes of readdirSync(dir.path, { encoding: 'buffer' })) {
      const text = bytes.toString()
      if (!text.includes('\uFFFD')) continue
      const name = Buffer.from(text).equals(bytes) ? text : bytes
      known.push({ name, kind: kindOf(dir, name) })
    }
  }
  return known
}

function kindOf(dir: PinnedEntry, name: EntryName, dirent?: Dirent): ListedEntry['kind'] {
  if (dirent?.isFile()) return 'file'
  if (dirent?.isDirectory()) return 'directory'
  if (dirent?.isSymbolicLink()) return 'other'
  // Not every file system reports the type with the name.
  try {
    using entry = pinChild(dir, name)
    return entry.stats.isFile() ? 'file' : entry.stats.isDirectory() ? 'directory' : 'other'
  } catch {
    return 'other'
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
