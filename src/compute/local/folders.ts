import { type Dirent, readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { childPath, type EntryName, type PinnedEntry, pinChild, systemCode } from './pinned.ts'

/** Descriptors a walk holds at a time, however deep the tree: trees deeper than the limit of open files exist. */
const MAX_HELD = 64
/** From this size on (bytes of the folder itself) reading a folder takes longer than a turn through the thread pool. */
const LARGE_FOLDER = 128 * 1024

/** An entry as its folder lists it. Only a hint: what it names may change at any time. */
export interface Listed {
  name: EntryName
  kind: 'file' | 'folder' | 'other'
}

/**
 * The chain of folders from a pinned one down to where a walk stands. It lets go of folders far
 * above and finds them again by name when the walk comes back, following no link then either.
 */
export class FolderChain implements Disposable {
  readonly #chain: { name: EntryName; folder: PinnedEntry | null }[] = []

  /** `top` stays the caller's to dispose of. */
  constructor(private readonly top: PinnedEntry) {}

  /** How many folders below the first one the walk stands. */
  get depth(): number {
    return this.#chain.length
  }

  /** The folder where the walk stands. Throws the system's error when it was moved away meanwhile. */
  get current(): PinnedEntry {
    const last = this.#chain.length - 1
    let from = last
    while (from >= 0 && this.#chain[from]?.folder === null) from -= 1
    for (let index = from + 1; index <= last; index += 1) {
      const link = this.#chain[index]
      if (link === undefined) break
      link.folder = pinFolder(this.#at(index - 1), link.name)
      this.#letGo(index - MAX_HELD)
    }
    return this.#at(last)
  }

  /** Steps down and returns the folder. Throws the system's error, `ENOTDIR` where no folder stands. */
  enter(name: EntryName): PinnedEntry {
    const folder = pinFolder(this.current, name)
    this.#chain.push({ name, folder })
    this.#letGo(this.#chain.length - 1 - MAX_HELD)
    return folder
  }

  /** Steps back up and returns the name of the folder it leaves. */
  leave(): EntryName {
    const left = this.#chain.pop()
    if (left === undefined) throw new Error('the walk stands at its first folder')
    left.folder?.[Symbol.dispose]()
    return left.name
  }

  [Symbol.dispose](): void {
    for (let index = 0; index < this.#chain.length; index += 1) this.#letGo(index)
  }

  #at(index: number): PinnedEntry {
    return this.#chain[index]?.folder ?? this.top
  }

  #letGo(index: number): void {
    const link = this.#chain[index]
    link?.folder?.[Symbol.dispose]()
    if (link !== undefined) link.folder = null
  }
}

/** What a pinned folder holds, in no order. Throws the system's error. */
export async function readFolder(folder: PinnedEntry): Promise<Listed[]> {
  const options = { withFileTypes: true } as const
  const large = folder.stats.size >= LARGE_FOLDER
  return listed(folder, large ? await readdir(folder.path, options) : readdirSync(folder.path, options))
}

function listed(folder: PinnedEntry, entries: Dirent[]): Listed[] {
  const known: Listed[] = []
  let unclear = false
  for (const entry of entries) {
    // A name that is not UTF-8 arrives with U+FFFD in it: only its bytes lead to the file.
    if (entry.name.includes('\uFFFD')) unclear = true
    else known.push({ name: entry.name, kind: kindOf(folder, entry.name, entry) })
  }
  if (unclear) {
    for (const bytes of readdirSync(folder.path, { encoding: 'buffer' })) {
      const text = bytes.toString()
      if (!text.includes('\uFFFD')) continue
      const name = Buffer.from(text).equals(bytes) ? text : bytes
      known.push({ name, kind: kindOf(folder, name) })
    }
  }
  return known
}

function kindOf(folder: PinnedEntry, name: EntryName, dirent?: Dirent): Listed['kind'] {
  if (dirent?.isFile()) return 'file'
  if (dirent?.isDirectory()) return 'folder'
  if (dirent?.isSymbolicLink()) return 'other'
  // Not every file system tells the type with the name.
  try {
    using entry = pinChild(folder, name)
    return entry.stats.isFile() ? 'file' : entry.stats.isDirectory() ? 'folder' : 'other'
  } catch {
    return 'other'
  }
}

function pinFolder(folder: PinnedEntry, name: EntryName): PinnedEntry {
  const entry = pinChild(folder, name)
  if (entry.stats.isDirectory()) return entry
  entry[Symbol.dispose]()
  throw Object.assign(new Error(`${childPath(folder, name)} is not a folder`), { code: 'ENOTDIR' })
}

/** Whether an error only says that a folder went away, was replaced, or may not be entered: a walk goes on without it. */
export function isPassable(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'].includes(systemCode(error) ?? '')
}
