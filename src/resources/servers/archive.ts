/**
 * The archive of one server: a tar (POSIX.1-2001 pax) that streams. Its first entry, `server.json`, says what the server
 * is. Its files follow below `files/`, as `Workspace.pack` returns them. The last entry, `manifest.jsonl`, describes each
 * entry before it on a line of JSON, so that a reader notices what was cut off or changed.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract, type Header, pack } from 'tar-stream'
import { RAW_NAME, RAW_TARGET } from '../../compute/trees.ts'
import { BerthError, badRequest } from '../../errors.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { isObject } from '../../runtime/is-object.ts'
import { addEntry, tarBytes } from '../../runtime/tar-bytes.ts'

/** The version of the format that this berth writes, the only one that it reads. */
const FORMAT = 1

const SERVER = 'server.json'
const FILES = 'files/'
const MANIFEST = 'manifest.jsonl'

/** Most bytes of `server.json`. @bound peer */
const MAX_SERVER_BYTES = 64 * 1024

/** Most characters of a manifest, which is held in memory: about two million files. @bound program */
const MAX_MANIFEST = 512 * 1024 * 1024

/** What the reader of tars says of a damaged one. */
const TAR_DAMAGE = /^(?:Unexpected end of data|Invalid |Header exceeds)/

/** What `server.json` says. */
export interface ArchivedServer {
  readonly format: typeof FORMAT
  /** The server's id when it was exported. */
  readonly id: string
  readonly task: string
  readonly tier: string
  readonly region: string
  /** The image that was chosen for it; null for the default, or a server that sees the system of its machine. */
  readonly image: string | null
  readonly root: boolean
  /** ISO 8601. */
  readonly exported_at: string
  /** The version of the berth that made it. */
  readonly version: string
}

/** How much an archive has. */
export interface ArchiveSize {
  /** Files and links. */
  readonly files: number
  /** Bytes of the files' content. */
  readonly bytes: number
}

/** What a manifest says of an entry: a file, with its content; a directory; or a symbolic link. */
type EntryFacts =
  | { readonly path: string; readonly mode: string; readonly size: number; readonly sha256: string }
  | { readonly path: string; readonly mode: string }
  | { readonly path: string; readonly target: string }

/** The manifest of a tree: a line of JSON for each entry, by its path. A hard link is described as the file that it leads to. */
export class TreeManifest {
  readonly #lines = new Map<string, string>()
  #characters = 0
  #files = 0
  #bytes = 0
  /** Bytes of content that have passed, of the entry under way too. */
  passed = 0

  /** @param hasTimes whether times are compared too, which no copy has exactly */
  constructor(private readonly hasTimes: boolean) {}

  get size(): ArchiveSize {
    return { files: this.#files, bytes: this.#bytes }
  }

  /** Yields the lines, each with its line feed. */
  *lines(): Generator<string> {
    for (const line of this.#lines.values()) yield `${line}\n`
  }

  /** The bytes of all lines. */
  get bytes(): number {
    let bytes = 0
    for (const line of this.lines()) bytes += Buffer.byteLength(line)
    return bytes
  }

  /**
   * Adds an entry.
   *
   * @param content of a file
   * @throws BerthError 400 if there are too many, or one of this path
   */
  add(header: Header, content: { size: number; sha256: string } | null): void {
    const path = pathOf(header)
    const facts = this.#factsOf(header, path, content)
    const line = JSON.stringify({ ...facts, ...(this.hasTimes ? { modified: timeOf(header) } : {}) })
    if (this.#lines.has(path)) throw badRequest(`The archive has the entry ${quoted(path)} twice.`)
    this.#characters += path.length + line.length
    if (this.#characters > MAX_MANIFEST)
      throw badRequest(
        'The server has more files than one archive describes, about two million. Remove directories that can be made again, such as node_modules.',
      )
    this.#lines.set(path, line)
    if (header.type !== 'directory') this.#files += 1
    this.#bytes += content?.size ?? 0
  }

  /** Reports whether something at a path is not a directory. */
  isLeaf(path: string): boolean {
    const line = this.#lines.get(path)
    return line !== undefined && !isDirectory(JSON.parse(line))
  }

  /** Returns the path of an entry that is not the same in another manifest, or in one of them alone; null if all are. */
  differenceTo(other: TreeManifest): string | null {
    for (const [path, line] of this.#lines) if (other.#lines.get(path) !== line) return path
    for (const path of other.#lines.keys()) if (!this.#lines.has(path)) return path
    return null
  }

  /**
   * Compares it with a manifest that was written.
   *
   * @throws BerthError 400 with what differs
   */
  async check(text: AsyncIterable<Uint8Array>): Promise<void> {
    const left = new Set(this.#lines.keys())
    for await (const line of linesOf(text)) {
      const facts = parsed(line)
      const path = isObject(facts) && typeof facts.path === 'string' ? facts.path : null
      if (path === null) throw damaged(`its ${MANIFEST} is not what berth writes`)
      if (!left.delete(path)) throw damaged(`it lacks ${quoted(path)}`)
      if (JSON.stringify(facts) !== this.#lines.get(path))
        throw damaged(`${quoted(path)} is not what its ${MANIFEST} says`)
    }
    const [extra] = left
    if (extra !== undefined) throw damaged(`${quoted(extra)} is not in its ${MANIFEST}`)
  }

  #factsOf(header: Header, path: string, content: { size: number; sha256: string } | null): EntryFacts {
    const mode = (header.mode ?? 0).toString(8).padStart(3, '0')
    if (header.type === 'symlink') return { path, target: targetOf(header) }
    if (header.type === 'directory') return { path, mode }
    if (content !== null) return { path, mode, ...content }
    const line = this.#lines.get(targetOf(header))
    const file = line === undefined ? null : JSON.parse(line)
    if (file?.sha256 === undefined)
      throw damaged(`${quoted(path)} is a link to ${quoted(targetOf(header))}, which is no file before it`)
    return { path, mode: file.mode, size: file.size, sha256: file.sha256 }
  }
}

/** Yields the archive of a server. @param files what `Workspace.pack` returns */
export async function* packArchive(
  server: ArchivedServer,
  files: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const tar = pack()
  const manifest = new TreeManifest(true)
  yield* tarBytes(tar, async () => {
    const text = Buffer.from(`${JSON.stringify(server, null, 2)}\n`)
    const mtime = new Date(server.exported_at)
    const pax = { mtime: String(mtime.getTime() / 1000) }
    const facts = { mode: 0o644, mtime, type: 'file' as const }
    const header = { ...facts, pax, name: SERVER, size: text.length }
    await addEntry(tar, header, [text])
    manifest.add(header as Header, { size: text.length, sha256: sha256Of(text) })
    for await (const { header, content } of entriesOf(files)) {
      const moved = withNames(header, (name) => FILES + name)
      await describe(manifest, moved, content, (passing) => addEntry(tar, moved, passing))
    }
    await addEntry(tar, { ...facts, name: MANIFEST, size: manifest.bytes }, buffered(manifest.lines()))
  })
}

/** An archive that is read: what its server is, and the files, which have to be read to their end. */
export interface OpenedArchive {
  readonly server: ArchivedServer
  /**
   * Yields the files as `Workspace.unpack` takes them, once. Throws BerthError 400 if the archive is damaged, which may
   * show at its end, or if its files have more bytes.
   */
  files(most: number): AsyncGenerator<Uint8Array>
  /** How much was read. */
  readonly size: ArchiveSize
  /** Ends the reading. */
  close(): Promise<void>
}

/**
 * Begins to read an archive, which need not be trusted.
 *
 * @throws BerthError 400 if it is no archive of a server, or of another format
 */
export async function openArchive(archive: AsyncIterable<Uint8Array>): Promise<OpenedArchive> {
  const entries = entriesOf(archive)
  const manifest = new TreeManifest(true)
  const first = await entries.next().catch((error: unknown) => {
    throw error instanceof BerthError ? notAnArchive() : error
  })
  if (first.done || first.value.header.name !== SERVER || first.value.header.type !== 'file')
    throw notAnArchive()
  const { header, content } = first.value
  if ((header.size ?? 0) > MAX_SERVER_BYTES) throw notAnArchive()
  const text = Buffer.concat(await Array.fromAsync(content))
  manifest.add(header, { size: text.length, sha256: sha256Of(text) })
  const server = serverOf(text.toString())
  return {
    server,
    files: (most) => filesIn(entries, manifest, most),
    get size() {
      const { files, bytes } = manifest.size
      return { files: files - 1, bytes: bytes - text.length }
    },
    close: async () => void (await entries.return(undefined)),
  }
}

/** Yields a tar of what is below `files/`, and compares everything with the manifest at the end. */
async function* filesIn(
  entries: AsyncGenerator<TarEntry>,
  manifest: TreeManifest,
  most: number,
): AsyncGenerator<Uint8Array> {
  const tar = pack()
  const tree = tarBytes(tar, async () => {
    let isComplete = false
    for await (const { header, content } of entries) {
      if (isComplete) throw damaged(`something follows its ${MANIFEST}`)
      if (header.name === MANIFEST && header.type === 'file') {
        await manifest.check(content)
        isComplete = true
        continue
      }
      checkEntry(header, manifest)
      const inside = withNames(header, (name) => name.slice(FILES.length))
      await describe(manifest, header, content, (passing) => addEntry(tar, inside, passing))
    }
    if (!isComplete) throw damaged(`it is cut off: its ${MANIFEST} is missing`)
  })
  for await (const chunk of tree) {
    if (manifest.passed > most) throw tooLarge(most)
    yield chunk
  }
}

/** Returns the refusal of files that a server may not store. @param most bytes that it may */
export const tooLarge = (most: number): BerthError =>
  badRequest(
    `The files of the archive take more than the ${most / 1e9} GB that the server may store. Choose another tier.`,
  )

/** Describes a tree by what `Workspace.pack` returns of it. Times are left out. */
export async function describeTree(files: AsyncIterable<Uint8Array>): Promise<TreeManifest> {
  const manifest = new TreeManifest(false)
  for await (const { header, content } of entriesOf(files))
    await describe(manifest, header, content, async (passing) => {
      for await (const _ of passing ?? []) {
        // It is described as it passes.
      }
    })
  return manifest
}

/** Yields a tree as a tar like the one given, and describes it in a manifest meanwhile. */
export async function* describedTree(
  files: AsyncIterable<Uint8Array>,
  manifest: TreeManifest,
): AsyncGenerator<Uint8Array> {
  const tar = pack()
  yield* tarBytes(tar, async () => {
    for await (const { header, content } of entriesOf(files)) {
      const same = withNames(header, (name) => name)
      await describe(manifest, header, content, (passing) => addEntry(tar, same, passing))
    }
  })
}

/** An entry of a tar. Its content has to be read before the next one. */
interface TarEntry {
  readonly header: Header
  readonly content: AsyncIterable<Uint8Array>
}

/** Yields the entries of a tar. @throws BerthError 400 if it is damaged; what `archive` throws */
async function* entriesOf(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const entries = extract()
  const feeding = pipeline(Readable.from(archive, { objectMode: false }), entries)
  feeding.catch(() => {})
  /** Returns why reading has failed: if the stream failed, its error says more than that of the entry it cut short. */
  const causeOf = async (error: unknown): Promise<unknown> => {
    entries.destroy()
    const cause = await feeding.then(
      () => error,
      (failure) => (codeOf(failure) === 'ERR_STREAM_PREMATURE_CLOSE' ? error : failure),
    )
    return TAR_DAMAGE.test(messageOf(cause))
      ? damaged(`it is cut off or changed (${messageOf(cause)})`)
      : cause
  }
  async function* contentOf(entry: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* entry
    } catch (error) {
      throw await causeOf(error)
    }
  }
  try {
    for await (const entry of entries) {
      // Errors after reading has been given up have no other listener.
      entry.on('error', () => {})
      yield { header: entry.header, content: contentOf(entry as AsyncIterable<Uint8Array>) }
    }
    await feeding
  } catch (error) {
    throw await causeOf(error)
  } finally {
    entries.destroy()
  }
}

/** Adds an entry to a manifest while its content passes. */
async function describe(
  manifest: TreeManifest,
  header: Header,
  content: AsyncIterable<Uint8Array>,
  pass: (content: AsyncIterable<Uint8Array> | null) => Promise<void>,
): Promise<void> {
  if (header.type !== 'file') {
    for await (const _ of content) {
      // Only files have content.
    }
    manifest.add(header, null)
    return pass(null)
  }
  const hash = new Bun.CryptoHasher('sha256')
  let size = 0
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      hash.update(chunk)
      size += chunk.length
      manifest.passed += chunk.length
      yield chunk
    }
  }
  await pass(hashed())
  manifest.add(header, { size, sha256: hash.digest('hex') })
}

/** @throws BerthError 400 for an entry that no archive of berth's has, or that leads out of it */
function checkEntry(header: Header, manifest: TreeManifest): void {
  const path = pathOf(header)
  if (!header.name.startsWith(FILES) || !isInside(path))
    throw damaged(`${quoted(path)} leads out of its files`)
  if (!KINDS.has(header.type ?? ''))
    throw damaged(`${quoted(path)} is neither a file, a directory nor a link`)
  if (header.type === 'link' && !isInside(targetOf(header)))
    throw damaged(`${quoted(path)} is a link to ${quoted(targetOf(header))}, which is not among its files`)
  const names = path.split('/')
  for (let depth = 2; depth < names.length; depth += 1) {
    const above = names.slice(0, depth).join('/')
    if (manifest.isLeaf(above))
      throw damaged(`${quoted(path)} is below ${quoted(above)}, which is no directory`)
  }
}

const KINDS: ReadonlySet<string> = new Set(['file', 'directory', 'symlink', 'link'])

/** Reports whether a path is one of a file below `files/`. */
const isInside = (path: string): boolean =>
  path.startsWith(FILES) && path.split('/').every((name) => name !== '' && name !== '.' && name !== '..')

/** Returns a header with other names: its own, and the target of a hard link. */
function withNames(header: Header, rename: (name: string) => string): Header {
  const { mtime, [RAW_NAME]: raw, [RAW_TARGET]: rawTarget } = paxOf(header)
  const renameRaw = (digits: string): string => rename(Buffer.from(digits, 'hex').toString('latin1'))
  const hex = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('hex')
  const isLink = header.type === 'link'
  return {
    type: header.type,
    mode: header.mode,
    mtime: header.mtime,
    size: header.size,
    name: rename(header.name),
    linkname: isLink && header.linkname ? rename(header.linkname) : header.linkname,
    pax: {
      ...(mtime === undefined ? {} : { mtime }),
      ...(raw === undefined ? {} : { [RAW_NAME]: hex(renameRaw(raw)) }),
      ...(rawTarget === undefined ? {} : { [RAW_TARGET]: isLink ? hex(renameRaw(rawTarget)) : rawTarget }),
    },
  } as Header
}

const paxOf = (header: Header): Record<string, string | undefined> =>
  (header.pax as Record<string, string | undefined> | null | undefined) ?? {}

/** Returns the path of an entry. In one that is not UTF-8, NUL and two digits are a byte that is not ASCII. */
const pathOf = (header: Header): string => readable(paxOf(header)[RAW_NAME]) ?? header.name.replace(/\/$/, '')
const targetOf = (header: Header): string => readable(paxOf(header)[RAW_TARGET]) ?? header.linkname ?? ''

const readable = (digits: string | undefined): string | null =>
  digits === undefined
    ? null
    : Buffer.from(digits, 'hex')
        .toString('latin1')
        .replace(/[^\x20-\x7e]/g, (char) => `\0${char.charCodeAt(0).toString(16).padStart(2, '0')}`)

const timeOf = (header: Header): string =>
  paxOf(header).mtime ?? String((header.mtime?.getTime() ?? 0) / 1000)

const isDirectory = (facts: object): boolean => !('size' in facts) && !('target' in facts)

/** Reads what `server.json` says. @throws BerthError 400 */
function serverOf(text: string): ArchivedServer {
  const facts = parsed(text)
  if (!isObject(facts) || typeof facts.format !== 'number') throw notAnArchive()
  if (facts.format !== FORMAT)
    throw badRequest(
      `The archive has the format ${facts.format}, and this berth reads ${FORMAT}. Use the version of berth that made it${typeof facts.version === 'string' ? `, ${facts.version}` : ''}.`,
    )
  const isWhole =
    ['id', 'task', 'tier', 'region', 'exported_at', 'version'].every(
      (name) => typeof facts[name] === 'string',
    ) &&
    (facts.image === null || typeof facts.image === 'string') &&
    typeof facts.root === 'boolean' &&
    !Number.isNaN(Date.parse(String(facts.exported_at)))
  if (!isWhole) throw notAnArchive()
  return facts as unknown as ArchivedServer
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Yields lines of UTF-8. @throws BerthError 400 if they are longer than any of a manifest */
async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_SERVER_BYTES) throw damaged(`its ${MANIFEST} is not what berth writes`)
    yield* lines
  }
  if (rest !== '') throw damaged(`its ${MANIFEST} is cut off`)
}

/** Bytes of lines that are passed on at once. */
const PIECE = 64 * 1024

function* buffered(lines: Iterable<string>): Generator<Uint8Array> {
  let text = ''
  for (const line of lines) {
    text += line
    if (text.length < PIECE) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(text)
}

const sha256Of = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

const quoted = (path: string): string => JSON.stringify(path)

const damaged = (what: string): BerthError =>
  badRequest(`The archive is damaged: ${what}. Export the server again, or take another copy of the file.`)

const notAnArchive = (): BerthError =>
  badRequest('That is no archive of a server. "berth servers export SERVER FILE" makes one.')
