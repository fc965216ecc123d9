import { closeSync, constants, type Dirent, openSync, readdirSync } from 'node:fs'
import { loadReadDirectory } from '../../system/linux/files.ts'
import { type EntryName, type PinnedEntry, pinChild } from './pinned.ts'

/** An entry as its directory lists it. It is only a hint: the entry may change at any time. */
export interface ListedEntry {
  name: EntryName
  kind: 'file' | 'directory' | 'other'
}

/**
 * Size of a directory itself, in bytes, from which it is read in pieces: it takes longer than a turn of the event loop, and
 * with hard links a program can give it more names than memory holds.
 */
const LARGE_DIRECTORY = 128 * 1024

/** Bytes of a large directory that are read at a time; some thousand names. */
const PIECE = 128 * 1024

/** What getdents64(2) returns: fields of an entry, and kinds of entries. */
const RECORD_LENGTH = 16
const TYPE = 18
const NAME = 19
const DT_UNKNOWN = 0
const DT_DIR = 4
const DT_REG = 8

/**
 * The entries of a pinned directory, in no particular order, to be taken one by one. Those of a large directory are read as they
 * are taken: first all that are no directories, so that it is closed before a walk goes down.
 */
export class Listing implements Disposable {
  readonly #dir: PinnedEntry
  /** Reads the next names of a large directory; null if all have been read. */
  #reader: LargeDirectory | null
  #entries: ListedEntry[]
  /** Directories of a large directory, to be taken last. */
  readonly #directories: ListedEntry[] = []

  /** Opens the listing of a directory, which has to stay pinned until all entries have been taken. Throws the system's error. */
  static async open(dir: PinnedEntry): Promise<Listing> {
    const options = { withFileTypes: true } as const
    if (dir.stats.size < LARGE_DIRECTORY)
      return new Listing(dir, listed(dir, readdirSync(dir.path, options)), null)
    if (dir.pinned) return new Listing(dir, [], new LargeDirectory(dir))
    // Not loaded before: a start would wait half a millisecond for it.
    const { readdir } = await import('node:fs/promises')
    return new Listing(dir, listed(dir, await readdir(dir.path, options)), null)
  }

  /** Returns a listing of given entries. */
  static of(dir: PinnedEntry, entries: ListedEntry[] = []): Listing {
    return new Listing(dir, entries, null)
  }

  private constructor(dir: PinnedEntry, entries: ListedEntry[], reader: LargeDirectory | null) {
    this.#dir = dir
    this.#entries = entries
    this.#reader = reader
  }

  /** Takes an entry; undefined if none is left. */
  pop(): ListedEntry | undefined {
    while (this.#reader !== null && this.#entries.length === 0) {
      const piece = this.#reader.read()
      if (piece.length === 0) {
        this[Symbol.dispose]()
        this.#entries = this.#directories
      }
      for (const { name, type } of piece) {
        const kind = type === DT_UNKNOWN ? kindOf(this.#dir, name) : kindOfType(type)
        if (kind === 'directory') this.#directories.push({ name, kind })
        else this.#entries.push({ name, kind })
      }
    }
    return this.#entries.pop()
  }

  /** Adds an entry, to be taken next, or with the other directories. */
  push(entry: ListedEntry): void {
    const isLater = this.#reader !== null && entry.kind === 'directory'
    ;(isLater ? this.#directories : this.#entries).push(entry)
  }

  /** Closes the directory, if that is open. */
  [Symbol.dispose](): void {
    this.#reader?.[Symbol.dispose]()
    this.#reader = null
  }
}

const kindOfType = (type: number): ListedEntry['kind'] =>
  type === DT_REG ? 'file' : type === DT_DIR ? 'directory' : 'other'

/** A directory that is read in pieces (getdents64(2)). */
class LargeDirectory implements Disposable {
  readonly #descriptor: number
  readonly #bytes = Buffer.alloc(PIECE)
  readonly #read: (descriptor: number, bytes: Buffer) => number

  constructor(dir: PinnedEntry) {
    this.#read = loadReadDirectory()
    this.#descriptor = openSync(dir.path, constants.O_RDONLY | constants.O_DIRECTORY)
  }

  /** Returns the next entries; none at the end, and if the directory has been removed meanwhile. */
  read(): { name: EntryName; type: number }[] {
    const bytes = this.#bytes
    const length = this.#read(this.#descriptor, bytes)
    const entries: { name: EntryName; type: number }[] = []
    for (let at = 0; at < length; at += bytes.readUInt16LE(at + RECORD_LENGTH)) {
      const begin = at + NAME
      const raw = bytes.subarray(begin, bytes.indexOf(0, begin))
      const text = raw.toString()
      if (text === '.' || text === '..') continue
      entries.push({ name: nameOf(text, raw), type: bytes.readUInt8(at + TYPE) })
    }
    // Only a piece with nothing else would be taken for the end.
    return entries.length === 0 && length > 0 ? this.read() : entries
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }
}

/** Returns a name as text, or a copy of its bytes if they are not UTF-8. */
const nameOf = (text: string, raw: Buffer): EntryName =>
  text.includes('\uFFFD') && !Buffer.from(text).equals(raw) ? Buffer.from(raw) : text

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
      const name = nameOf(text, bytes)
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
    // It was removed meanwhile, or is closed to this user.
    return 'other'
  }
}
