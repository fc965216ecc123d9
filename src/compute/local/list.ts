import { canSkip, DirectoryChain, type ListedEntry, readDirectory } from './directories.ts'
import { Pace } from './pace.ts'
import { MAX_PATH_BYTES } from './path.ts'
import type { PinnedEntry } from './pinned.ts'
import { isTemporary } from './temporary.ts'

const LEFT_OUT = new Set(['.git', 'node_modules'])

/** A directory of the walk: its relevant entries, sorted, and the next one to visit. */
interface Frame {
  prefix: string
  entries: SortedEntry[]
  next: number
}

interface SortedEntry {
  name: string
  /** The name as paths below continue it: a directory's with `/`. Sorting by it sorts the paths. */
  key: string
  dir: boolean
}

/**
 * Lists the regular files below a pinned directory as relative paths, by code point. Does not follow links. Skips
 * unreadable directories, names that are not UTF-8 and paths beyond the system's limit, which no path of the API
 * could name.
 */
export async function listFiles(root: PinnedEntry, all: boolean): Promise<string[]> {
  const files: string[] = []
  const pace = new Pace()
  using chain = new DirectoryChain(root)
  const frames: Frame[] = [{ prefix: '', entries: arrange(await readDirectory(root), all), next: 0 }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries[frame.next]
    frame.next += 1
    if (pace.due) await pace.rest()
    if (entry === undefined) {
      frames.pop()
      if (frames.length > 0) chain.leave()
    } else if (frame.prefix.length + entry.name.length > MAX_PATH_BYTES) {
      // No call of the API could name it, and a listing of such paths could fill memory.
    } else if (!entry.dir) {
      files.push(frame.prefix + entry.name)
    } else {
      const depth = chain.depth
      try {
        const dir = chain.enter(entry.name)
        const entries = arrange(await readDirectory(dir), all)
        frames.push({ prefix: frame.prefix + entry.key, entries, next: 0 })
      } catch (error) {
        if (chain.depth > depth) chain.leave()
        if (!canSkip(error)) throw error
      }
    }
  }
  return files
}

function arrange(listed: ListedEntry[], all: boolean): SortedEntry[] {
  const entries: SortedEntry[] = []
  let plain = true
  for (const { name, kind } of listed) {
    if (typeof name !== 'string' || kind === 'other') continue
    if (kind === 'file' ? isTemporary(name) : !all && LEFT_OUT.has(name)) continue
    // Beyond the Basic Multilingual Plane the order of UTF-16 units differs from that of code points.
    if (plain && /[\ud800-\udfff]/.test(name)) plain = false
    entries.push({ name, key: kind === 'directory' ? `${name}/` : name, dir: kind === 'directory' })
  }
  const compare = plain
    ? (a: SortedEntry, b: SortedEntry) => (a.key < b.key ? -1 : 1)
    : (a: SortedEntry, b: SortedEntry) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
  return entries.sort(compare)
}
