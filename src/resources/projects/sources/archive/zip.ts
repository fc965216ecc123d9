import { buffer } from 'node:stream/consumers'
import { crc32 } from 'node:zlib'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { utf8Text } from '../../../../runtime/decode.ts'
import { damaged, isSystemError, quoted, SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { tooLarge, tooMany } from '../tree.ts'
import type { TreeWriter } from './writer.ts'

/** Systems whose entries contain file modes (PKWARE APPNOTE 4.4.2). */
const UNIX = new Set([3, 19])
/** Kinds of file in a Unix mode. */
const KIND = 0o170000
const DIRECTORY = 0o040000
const FILE = 0o100000
const LINK = 0o120000

/** @bound system */
const MAX_LINK_BYTES = 4096
/** Compression methods (PKWARE APPNOTE 4.4.5). */
const STORED = 0
const DEFLATED = 8

/**
 * Unpacks a zip. Checks its whole directory first, then writes.
 *
 * @throws SourceError
 */
export async function unpackZip(
  path: string,
  writer: TreeWriter,
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<void> {
  let zip: ZipFile | undefined
  try {
    zip = await openPromise(path, { autoClose: false, lazyEntries: true, decodeStrings: false })
    const entries = await readDirectory(zip, limits)
    for (const entry of entries) {
      signal.throwIfAborted()
      await takeEntry(zip, entry, writer)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof SourceError || isSystemError(error)) throw error
    throw damaged(error)
  } finally {
    zip?.close()
  }
}

/** An entry with its name read. */
interface Named {
  name: string
  entry: Entry
}

async function readDirectory(zip: ZipFile, limits: SourceLimits): Promise<Named[]> {
  if (zip.entryCount > limits.entries) throw tooMany(limits)
  const entries: Named[] = []
  let bytes = 0
  for await (const entry of zip.eachEntry()) {
    const name = nameOf(entry)
    if (entry.isEncrypted())
      throw new SourceError(`Its entry ${quoted(name)} is encrypted. Send it without a password.`)
    if (![STORED, DEFLATED].includes(entry.compressionMethod)) {
      throw new SourceError(
        `Its entry ${quoted(name)} is compressed in a way that is not taken. Use deflate.`,
      )
    }
    bytes += entry.uncompressedSize
    if (bytes > limits.bytes) throw tooLarge(limits)
    entries.push({ name, entry })
    if (entries.length > limits.entries) throw tooMany(limits)
  }
  return entries
}

/** Decodes the name as UTF-8, which current programs write even without the flag for it. */
function nameOf({ fileNameRaw }: Entry): string {
  const name = utf8Text(fileNameRaw)
  if (name !== null) return name
  throw new SourceError(`Its entry ${quoted(fileNameRaw.toString('latin1'))} has a name that is not UTF-8.`)
}

async function takeEntry(zip: ZipFile, { name, entry }: Named, writer: TreeWriter): Promise<void> {
  const mode = UNIX.has(entry.versionMadeBy >>> 8) ? entry.externalFileAttributes >>> 16 : 0
  const kind = mode & KIND
  if (name.endsWith('/') || kind === DIRECTORY) return await writer.directory(name)
  if (kind === LINK) {
    if (entry.uncompressedSize > MAX_LINK_BYTES)
      throw new SourceError(`Its entry ${quoted(name)} is a link to nothing that can be.`)
    const target = await buffer(await contentOf(zip, name, entry))
    return await writer.link(name, target.toString())
  }
  if (kind !== 0 && kind !== FILE)
    throw new SourceError(`Its entry ${quoted(name)} is a device, a pipe or a socket.`)
  await writer.file({ name, size: entry.uncompressedSize, mode }, await contentOf(zip, name, entry))
}

/** Returns an entry's bytes; fails at the end if they do not match its checksum. */
async function contentOf(zip: ZipFile, name: string, entry: Entry): Promise<AsyncIterable<Uint8Array>> {
  const stream = await zip.openReadStreamPromise(entry)
  // Errors after reading has been given up have no other listener.
  stream.on('error', () => {})
  return (async function* () {
    let sum = 0
    for await (const chunk of stream) {
      sum = crc32(chunk, sum)
      yield chunk
    }
    if (sum !== entry.crc32)
      throw new SourceError(`Its entry ${quoted(name)} is damaged: its checksum does not hold.`)
  })()
}
