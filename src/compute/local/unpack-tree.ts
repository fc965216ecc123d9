import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract, type Header } from 'tar-stream'
import { writeAll } from '../../runtime/descriptor-io.ts'
import { codeOf } from '../../runtime/error-info.ts'
import { Pace } from '../../runtime/pace.ts'
import { NO_LINKS } from '../../system/files.ts'
import { RAW_NAME, RAW_TARGET, SMALL_FILE } from './pack-tree.ts'
import { childPath, type EntryName, type PinnedEntry, pinChild } from './pinned.ts'
import { pinWorkspace, toWorkspaceError, type WorkspaceRoot } from './resolve-path.ts'
import { quote } from './workspace-path.ts'

/** An entry of an archive: its name from the top down, and what is set once it is complete. */
interface UnpackedEntry {
  names: EntryName[]
  mode: number
  /** Seconds since 1970. */
  modifiedAt: number
}

/** Notified while a tree is unpacked. */
interface UnpackListener {
  /** Called for bytes of files that were written. */
  read(bytes: number): void
  /** Called for each file and link. */
  copied(): void
}

/**
 * Unpacks a tar, which need not be trusted, into a directory. Follows no link, so nothing gets outside. Restores
 * times, and permission bits of owner, group and others, but no other mode bits.
 *
 * @throws Error if it is damaged, or an entry exists, leads outside or is neither file, directory nor link; what was
 * unpacked before stays. `WorkspaceError` `disk_full`, `invalid`. The error of `archive`, or the system's
 */
export async function unpackTree(
  root: WorkspaceRoot,
  archive: AsyncIterable<Uint8Array>,
  listener?: UnpackListener,
): Promise<void> {
  const entries = extract()
  const feeding = pipeline(Readable.from(archive, { objectMode: false }), entries)
  feeding.catch(() => {})
  const unpacker = new TreeUnpacker(root)
  const pace = new Pace()
  try {
    for await (const entry of entries) {
      // Errors after reading has been given up have no other listener.
      entry.on('error', () => {})
      const { header } = entry
      const content = entry as AsyncIterable<Uint8Array>
      await unpacker.add(header, listener ? counted(content, listener) : content).catch((error) => {
        if (codeOf(error) !== 'EEXIST') throw toWorkspaceError(error, header.name)
        throw new Error(`The archive's entry ${quote(header.name)} exists already.`)
      })
      if (header.type !== 'directory') listener?.copied()
      if (pace.due) await pace.rest()
    }
    await feeding
    unpacker.finish()
  } catch (error) {
    entries.destroy()
    // If the stream failed, its error says more than that of the entry it cut short.
    throw await feeding.then(
      () => error,
      (failure) => (codeOf(failure) === 'ERR_STREAM_PREMATURE_CLOSE' ? error : failure),
    )
  }
}

async function* counted(
  content: AsyncIterable<Uint8Array>,
  listener: UnpackListener,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    yield chunk
    listener.read(chunk.length)
  }
}

class TreeUnpacker {
  readonly #root: WorkspaceRoot
  readonly #directories: UnpackedEntry[] = []

  constructor(root: WorkspaceRoot) {
    this.#root = root
  }

  async add(header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
    const entry = entryOf(header)
    const { names } = entry
    if (header.type === 'directory') {
      this.#directories.push(entry)
      this.#enter(names)[Symbol.dispose]()
    } else {
      using parent = this.#enter(names.slice(0, -1))
      const path = childPath(parent, lastOf(names, header.name))
      if (header.type === 'file') return await writeFile(path, entry, header.size, content)
      if (header.type === 'symlink') symlinkSync(rawOf(header, RAW_TARGET) ?? header.linkname, path)
      else if (header.type === 'link') this.#link(header, path)
      else
        throw new Error(
          `The archive's entry ${quote(header.name)} is neither a file, a directory nor a link.`,
        )
    }
    for await (const _ of content) {
      // Content of an entry that should have none is skipped.
    }
  }

  /** Gives directories their modes and times, the deepest first: a closed one could not be filled. */
  finish(): void {
    for (const { names, mode, modifiedAt } of this.#directories.reverse()) {
      using dir = this.#enter(names)
      utimesSync(dir.path, modifiedAt, modifiedAt)
      chmodSync(dir.path, mode)
    }
  }

  #link(header: Header, path: string | Buffer): void {
    const target = split(rawOf(header, RAW_TARGET) ?? header.linkname, header.name)
    using parent = this.#enter(target.slice(0, -1))
    linkSync(childPath(parent, lastOf(target, header.name)), path)
  }

  /** Pins a directory; makes it, and those above it, if they are missing. */
  #enter(names: readonly EntryName[]): PinnedEntry {
    let dir = pinWorkspace(this.#root)
    for (const name of names) {
      using above = dir
      dir = enter(above, name)
    }
    return dir
  }
}

function enter(above: PinnedEntry, name: EntryName): PinnedEntry {
  const pin = (): PinnedEntry | null => {
    try {
      return pinChild(above, name)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw error
    }
  }
  let dir = pin()
  if (dir === null) {
    mkdirSync(childPath(above, name), 0o700)
    dir = pinChild(above, name)
  }
  if (dir.stats.isDirectory()) return dir
  dir[Symbol.dispose]()
  throw new Error(`The archive needs a directory ${quote(String(name))}, which is something else in it.`)
}

async function writeFile(
  path: string | Buffer,
  { mode, modifiedAt }: UnpackedEntry,
  size: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL } = constants
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | NO_LINKS, 0o600)
  try {
    let written = 0
    for await (const chunk of content) {
      if (size > SMALL_FILE) await writeAll(descriptor, chunk, written)
      else for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at)
      written += chunk.length
    }
    futimesSync(descriptor, modifiedAt, modifiedAt)
    fchmodSync(descriptor, mode)
  } finally {
    closeSync(descriptor)
  }
}

function entryOf(header: Header): UnpackedEntry {
  const names = split(rawOf(header, RAW_NAME) ?? header.name, header.name)
  const exact = Number((header.pax as Record<string, string> | undefined)?.mtime)
  const modifiedAt = Number.isFinite(exact) ? exact : header.mtime.getTime() / 1000
  return { names, mode: header.mode & 0o777, modifiedAt }
}

function rawOf({ pax }: Header, record: string): Buffer | null {
  const digits = (pax as Record<string, string> | undefined)?.[record]
  return digits === undefined ? null : Buffer.from(digits, 'hex')
}

/** Splits a path. Throws if it leads outside. @param shown the name for messages */
function split(path: string | Buffer, shown: string): EntryName[] {
  const names = typeof path === 'string' ? path.split('/') : splitBytes(path)
  const kept = names.filter((name) => name.length > 0 && String(name) !== '.')
  if (String(path).startsWith('/') || kept.some((name) => String(name) === '..')) {
    throw new Error(`The archive's entry ${quote(shown)} leads out of it.`)
  }
  return kept
}

function splitBytes(path: Buffer): Buffer[] {
  const at = path.indexOf('/')
  return at === -1 ? [path] : [path.subarray(0, at), ...splitBytes(path.subarray(at + 1))]
}

function lastOf(names: readonly EntryName[], shown: string): EntryName {
  const last = names.at(-1)
  if (last === undefined) throw new Error(`The archive's entry ${quote(shown)} has no name.`)
  return last
}
