import { createReadStream } from 'node:fs'
import { chmod, lstat, mkdir, open, readdir, readlink, realpath, symlink } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { type Duplex, pipeline, Readable } from 'node:stream'
import { createGunzip, createGzip } from 'node:zlib'

/** Directories that are not sent, wherever they are: they are made anew, or are the developer's own. */
const LEFT_OUT = new Set(['node_modules', '.git'])

/** The size of a block of a tar archive. */
const BLOCK = 512

/** A file, a directory or a symbolic link below a local directory. */
export interface Entry {
  /** Relative, with `/`. */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'link'
  readonly size: number
  readonly executable: boolean
  /** Where a link leads. */
  readonly target: string
}

/** What of a directory is sent. */
export interface DirectoryOptions {
  /** Whether to send a file or directory, by its relative path with `/`. `node_modules` and `.git` are never sent. */
  readonly filter?: (path: string) => boolean
}

/** Lists what is below a directory, sorted. Sockets, pipes and devices are left out. */
export async function entriesOf(directory: string, { filter }: DirectoryOptions = {}): Promise<Entry[]> {
  const found: Entry[] = []
  const visit = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(directory, below))).sort()) {
      const path = below === '' ? name : `${below}/${name}`
      if (LEFT_OUT.has(name) || filter?.(path) === false) continue
      const status = await lstat(join(directory, path))
      const kind = status.isFile()
        ? 'file'
        : status.isDirectory()
          ? 'directory'
          : status.isSymbolicLink()
            ? 'link'
            : null
      if (kind === null) continue
      found.push({
        path,
        kind,
        size: kind === 'file' ? status.size : 0,
        executable: kind === 'file' && (status.mode & 0o111) !== 0,
        target: kind === 'link' ? await readlink(join(directory, path)) : '',
      })
      if (kind === 'directory') await visit(path)
    }
  }
  await visit('')
  return found
}

/** A piece of a file: `size` bytes from `offset` on. */
export interface Piece {
  readonly offset: number
  readonly size: number
}

/**
 * Packs entries of a directory as tar.gz.
 *
 * @param pieces the part of a file to pack, by its path; all of it by default
 */
export function pack(
  directory: string,
  entries: readonly Entry[],
  pieces: ReadonlyMap<string, Piece> = new Map(),
): Readable {
  async function* archive(): AsyncGenerator<Uint8Array> {
    for (const entry of entries) {
      const { offset, size } = pieces.get(entry.path) ?? { offset: 0, size: entry.size }
      yield header(entry, size)
      if (entry.kind !== 'file') continue
      let left = size
      if (size > 0) {
        // A file that grows meanwhile is cut at the size in its header, one that shrinks is filled up.
        const stream = createReadStream(join(directory, entry.path), {
          start: offset,
          end: offset + size - 1,
        })
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          left -= chunk.length
          yield chunk
        }
      }
      yield new Uint8Array(left + padding(size))
    }
    yield new Uint8Array(2 * BLOCK)
  }
  return joined(Readable.from(archive(), { objectMode: false }), createGzip())
}

/**
 * Unpacks a tar.gz into a directory, which is made. Nothing outside is written, whatever the archive says.
 *
 * @throws Error if an entry leads out of the directory, also by a symbolic link, or the archive is malformed
 */
export async function unpack(archive: AsyncIterable<Uint8Array>, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const root = await realpath(directory)
  const reader = new BlockReader(joined(Readable.from(archive), createGunzip()))
  let longPath = ''
  let longTarget = ''
  while (true) {
    const block = await reader.read(BLOCK)
    if (block === null || block.every((byte) => byte === 0)) break
    const field = (from: number, length: number): string =>
      block.toString('utf8', from, from + length).replace(/\0[\s\S]*$/, '')
    const size = sizeOf(block)
    const type = field(156, 1) || '0'
    if (type === 'L' || type === 'K' || type === 'x' || type === 'g') {
      const text = (await reader.whole(size)).toString('utf8')
      if (type === 'L') longPath = text.replace(/\0[\s\S]*$/, '')
      if (type === 'K') longTarget = text.replace(/\0[\s\S]*$/, '')
      if (type === 'x') {
        longPath = paxField(text, 'path') ?? longPath
        longTarget = paxField(text, 'linkpath') ?? longTarget
      }
      continue
    }
    const prefix = field(257, 5) === 'ustar' && block[262] === 0 ? field(345, 155) : ''
    const path = longPath || (prefix ? `${prefix}/${field(0, 100)}` : field(0, 100))
    const target = longTarget || field(157, 100)
    longPath = ''
    longTarget = ''
    const place = await placeOf(root, path)
    if (type === '5') await mkdir(place, { recursive: true })
    else if (type === '2') await link(root, place, target)
    else if (type === '0' || type === '7') {
      const file = await open(place, 'wx', 0o644)
      try {
        for await (const chunk of reader.chunks(size)) await file.write(chunk)
      } finally {
        await file.close()
      }
      if ((Number.parseInt(field(100, 8).trim() || '0', 8) & 0o111) !== 0) await chmod(place, 0o755)
    } else await reader.whole(size)
  }
  await reader.end()
}

/** Has a stream read from another one, whose error it gets. */
function joined<Target extends Duplex>(source: Readable, target: Target): Target {
  // Readers of the target see the error, so nobody needs it here.
  pipeline(source, target, () => {})
  return target
}

/** Returns where an entry is written, with its parent directory made and known to be inside. */
async function placeOf(root: string, path: string): Promise<string> {
  const place = resolve(root, path)
  if (isAbsolute(path) || (place !== root && !place.startsWith(root + sep)))
    throw new Error(`The archive has ${JSON.stringify(path)}, which leads out of ${root}.`)
  const parent = place === root ? root : dirname(place)
  await mkdir(parent, { recursive: true })
  const real = await realpath(parent)
  if (real !== root && !real.startsWith(root + sep))
    throw new Error(`The archive has ${JSON.stringify(path)}, which leads out of ${root} by a link.`)
  return place
}

async function link(root: string, place: string, target: string): Promise<void> {
  const leadsTo = relative(root, resolve(dirname(place), target))
  if (isAbsolute(target) || leadsTo.startsWith('..'))
    throw new Error(`The archive has a link to ${JSON.stringify(target)}, which leads out of ${root}.`)
  await symlink(target, place)
}

/** The header of an entry (POSIX.1-2001), after a pax header if a name does not fit. */
function header(entry: Entry, size: number): Uint8Array {
  const path = entry.kind === 'directory' ? `${entry.path}/` : entry.path
  const fields: string[] = []
  if (Buffer.byteLength(path) > 100) fields.push(paxRecord('path', path))
  if (Buffer.byteLength(entry.target) > 100) fields.push(paxRecord('linkpath', entry.target))
  if (size >= 8 ** 11) fields.push(paxRecord('size', String(size)))
  const pax = Buffer.from(fields.join(''))
  const mode = entry.kind === 'directory' || entry.executable ? 0o755 : 0o644
  const type = { file: '0', directory: '5', link: '2' }[entry.kind]
  const own = block(path, mode, size, type, entry.target)
  if (pax.length === 0) return own
  return Buffer.concat([
    block('pax', 0o644, pax.length, 'x', ''),
    pax,
    new Uint8Array(padding(pax.length)),
    own,
  ])
}

function block(path: string, mode: number, size: number, type: string, target: string): Buffer {
  const bytes = Buffer.alloc(BLOCK)
  const octal = (value: number, from: number, length: number): void => {
    bytes.write(
      value
        .toString(8)
        .padStart(length - 1, '0')
        .slice(-(length - 1)),
      from,
    )
  }
  Buffer.from(path).copy(bytes, 0, 0, 100)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  bytes.write(' '.repeat(8), 148)
  bytes.write(type, 156)
  Buffer.from(target).copy(bytes, 157, 0, 100)
  bytes.write('ustar\x0000', 257, 'latin1')
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return bytes
}

/** A record of a pax header: its own length in bytes, a key and a value. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + String(rest).length
  if (String(length).length !== String(rest).length) length = rest + String(length).length
  return `${length} ${key}=${value}\n`
}

const paxField = (text: string, key: string): string | undefined =>
  new RegExp(`^\\d+ ${key}=(.*)$`, 'm').exec(text)?.[1]

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK

/** The size in a header: octal digits, or binary if the first bit is set. */
function sizeOf(header: Buffer): number {
  if ((header[124] ?? 0) & 0x80) return Number(header.readBigUInt64BE(128))
  const size = Number.parseInt(header.toString('latin1', 124, 136).replace(/[\0 ].*$/, '') || '0', 8)
  if (Number.isNaN(size)) throw new Error('The archive is malformed: a header has no size.')
  return size
}

/** Reads a stream by numbers of bytes. */
export class BlockReader {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Reads exactly `size` bytes; null at the end. @throws Error if fewer are left */
  async read(size: number): Promise<Buffer | null> {
    while (this.#rest.length < size) {
      const { done, value } = await this.#source.next()
      if (done) {
        if (this.#rest.length === 0) return null
        throw new Error('The stream is cut off.')
      }
      this.#rest = Buffer.concat([this.#rest, value])
    }
    const taken = this.#rest.subarray(0, size)
    this.#rest = this.#rest.subarray(size)
    return taken
  }

  /** Reads the content of an entry in chunks, and its padding. */
  async *chunks(size: number): AsyncGenerator<Buffer> {
    let left = size
    while (left > 0) {
      const chunk = await this.read(Math.min(left, 65_536))
      if (chunk === null) throw new Error('The archive is cut off.')
      left -= chunk.length
      yield chunk
    }
    await this.read(padding(size))
  }

  /** Reads the content of an entry as one. */
  async whole(size: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    for await (const chunk of this.chunks(size)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  /** Reads what is left, so that an error of the source is seen. */
  async end(): Promise<void> {
    while (!(await this.#source.next()).done);
  }
}
