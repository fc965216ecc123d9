import { closeSync, mkdirSync, openSync, symlinkSync, writeSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFrom } from '../../../../runtime/descriptor-io.ts'
import { Pace } from '../../../../runtime/pace.ts'
import type { TemplateFile } from '../../../templates/files.ts'
import { quoted, SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { tooLarge, tooMany } from '../tree.ts'

/** The kind of an entry at a path of the tree. */
type Kind = 'directory' | 'file' | 'link'

/** @bound system */
const MAX_TARGET_BYTES = 1024

/** A regular file of an archive. */
interface FileEntry {
  name: string
  /** Bytes according to the archive. */
  size: number
  /** Permission bits as on Unix. */
  mode: number
}

/**
 * Writes an archive's entries into an empty directory that nothing else uses. No entry can be written through
 * another: links are created last, and an entry below a path that is not a directory is refused.
 *
 * All methods throw a `SourceError` that names the entry or the limit.
 */
export class TreeWriter {
  readonly #root: string
  readonly #limits: SourceLimits
  readonly #kinds = new Map<string, Kind>([['', 'directory']])
  readonly #links = new Map<string, string>()
  readonly #pace = new Pace()
  #entries = 0
  #bytes = 0

  constructor(root: string, limits: SourceLimits) {
    this.#root = root
    this.#limits = limits
  }

  /** The paths of files and links. */
  get paths(): string[] {
    return [...this.#kinds].flatMap(([path, kind]) => (kind === 'directory' ? [] : [path]))
  }

  /** The bytes of all files. */
  get bytes(): number {
    return this.#bytes
  }

  /** The names and kinds of the top entries. */
  get top(): { name: string; kind: Kind }[] {
    return [...this.#kinds].flatMap(([name, kind]) =>
      name === '' || name.includes('/') ? [] : [{ name, kind }],
    )
  }

  async directory(name: string): Promise<void> {
    const names = this.#admit(name)
    if (names !== null) this.#makeDirectories(name, names)
  }

  /** Writes a file while its bytes arrive. Refuses it if their number differs from the archive's. */
  async file(entry: FileEntry, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { name, size, mode } = entry
    if (!Number.isSafeInteger(size) || size < 0)
      throw new SourceError(`Its entry ${quoted(name)} has no valid size.`)
    if (this.#bytes + size > this.#limits.bytes) throw tooLarge(this.#limits)
    const names = this.#admit(name)
    const path = names && this.#claim(name, names, 'file')
    const file = path === null ? null : openSync(join(this.#root, path), 'wx', mode & 0o100 ? 0o755 : 0o644)
    let written = 0
    try {
      for await (const chunk of content) {
        written += chunk.length
        if (written > size) break
        if (file !== null) await writeAll(file, chunk, size)
      }
    } finally {
      if (file !== null) closeSync(file)
    }
    if (this.#pace.due) await this.#pace.rest()
    if (written !== size) {
      const count = written > size ? 'more' : 'fewer'
      throw new SourceError(`Its entry ${quoted(name)} has ${count} bytes than the archive says.`)
    }
    if (path !== null) this.#bytes += size
  }

  /** Records a symbolic link; `checkTree` checks where it leads. */
  async link(name: string, target: string): Promise<void> {
    const names = this.#admit(name)
    if (names === null) return
    if (
      target === '' ||
      target.includes('\0') ||
      target.includes('\uFFFD') ||
      Buffer.byteLength(target) > MAX_TARGET_BYTES
    ) {
      throw new SourceError(`Its entry ${quoted(name)} is a link to nothing that can be.`)
    }
    this.#links.set(this.#claim(name, names, 'link'), target)
  }

  /** Copies an earlier file for a hard link, so no two names share a file. */
  async hardLink(name: string, target: string): Promise<void> {
    const names = this.#admit(name)
    if (names === null) return
    const from = parseName(target)?.join('/')
    if (from === undefined || this.#kinds.get(from) !== 'file') {
      throw new SourceError(
        `Its entry ${quoted(name)} is a hard link to ${quoted(target)}, which is not a file before it.`,
      )
    }
    const path = this.#claim(name, names, 'file')
    const { size } = await Bun.file(join(this.#root, from)).stat()
    if (this.#bytes + size > this.#limits.bytes) throw tooLarge(this.#limits)
    this.#bytes += size
    await copyFile(join(this.#root, from), join(this.#root, path))
  }

  /** Makes the links. Nothing can be written afterwards. */
  async finish(): Promise<void> {
    for (const [path, target] of this.#links) {
      if (this.#pace.due) await this.#pace.rest()
      symlinkSync(target, join(this.#root, path))
    }
  }

  /** Counts an entry. Skipped ones count too, because they take time. */
  #admit(name: string): string[] | null {
    this.#count()
    return parseName(name)
  }

  #count(): void {
    this.#entries += 1
    if (this.#entries > this.#limits.entries) throw tooMany(this.#limits)
  }

  /** Takes a path for a file or a link, with the directories above it. */
  #claim(name: string, names: string[], kind: Kind): string {
    if (names.length === 0) throw new SourceError(`Its entry ${quoted(name)} is a ${kind} without a name.`)
    const path = names.join('/')
    this.#makeDirectories(name, names.slice(0, -1))
    if (this.#kinds.has(path)) throw new SourceError(`Its entry ${quoted(name)} is there twice.`)
    this.#kinds.set(path, kind)
    return path
  }

  #makeDirectories(name: string, names: string[]): void {
    let path = ''
    for (const one of names) {
      path = path === '' ? one : `${path}/${one}`
      const kind = this.#kinds.get(path)
      if (kind === 'directory') continue
      if (kind !== undefined) {
        throw new SourceError(
          `Its entry ${quoted(name)} needs a directory ${quoted(path)}, which is a ${kind} in it.`,
        )
      }
      // Directories that no entry names count as well: a few long paths could make very many.
      if (path !== names.join('/')) this.#count()
      mkdirSync(join(this.#root, path))
      this.#kinds.set(path, 'directory')
    }
  }
}

/** Small files through the thread pool would take many times as long as the system call. */
const DIRECT_BYTES = 256 * 1024

async function writeAll(file: number, chunk: Uint8Array, size: number): Promise<void> {
  for (let at = 0; at < chunk.length; ) {
    at +=
      size <= DIRECT_BYTES
        ? writeSync(file, chunk, at)
        : await writeFrom(file, chunk, at, chunk.length - at, null)
  }
}

/** Linux: NAME_MAX; and a bound for paths that leaves room for the directories above. @bound system */
const MAX_NAME_BYTES = 255
const MAX_PATH_BYTES = 1024

/**
 * Entries that programs add to the code. A `.git` directory would bring hooks and settings that git obeys at the next
 * command in the project.
 */
const SKIPPED_NAMES = /^(?:__MACOSX|\.DS_Store|\.git)$/i

/**
 * Splits an entry's name. Refuses, rather than repairs, a name that could lead outside the directory or mean
 * something else on another system.
 *
 * @param name as in the archive, with `/`
 * @returns the names from the top down; empty for the archive's own directory, null for an entry to skip
 * @throws SourceError that names the entry
 */
function parseName(name: string): string[] | null {
  const refuse = (why: string): never => {
    throw new SourceError(`Its entry ${quoted(name)} ${why}.`)
  }
  if (name.includes('\0')) refuse('has a NUL byte in its name')
  if (name.includes('\uFFFD') || !name.isWellFormed()) refuse('has a name that is not UTF-8')
  if (name.includes('\\')) refuse('has a backslash in its name')
  if (name.startsWith('/') || /^[a-z]:/i.test(name)) refuse('has an absolute path')
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) refuse(`has a path of more than ${MAX_PATH_BYTES} bytes`)
  const names = name.split('/').filter((part) => part !== '' && part !== '.')
  if (names.includes('..')) refuse('leads out of the archive')
  if (names.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES)) {
    refuse(`has a name of more than ${MAX_NAME_BYTES} bytes`)
  }
  return names.some((part) => SKIPPED_NAMES.test(part)) ? null : names
}

/** Writes given files into a fresh directory of a staging directory and returns it. @throws SourceError */
export async function writeFiles(
  files: Iterable<TemplateFile> | AsyncIterable<TemplateFile>,
  staging: string,
  limits: SourceLimits,
): Promise<string> {
  const root = join(staging, 'tree')
  mkdirSync(root, { mode: 0o700 })
  const writer = new TreeWriter(root, limits)
  for await (const { path, bytes, mode } of files) {
    await writer.file({ name: path, size: bytes.length, mode }, once(bytes))
  }
  return root
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
