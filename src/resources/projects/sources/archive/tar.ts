import { createReadStream } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { damaged, isSystemError, quoted, SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { tooLarge } from '../tree.ts'
import type { TreeWriter } from './writer.ts'

/** Bytes of an entry in the stream besides its content: headers, long names, padding. */
const ENTRY_OVERHEAD = 8 * 1024

/**
 * Unpacks a tar as it streams by.
 *
 * @throws SourceError
 */
export async function unpackTar(
  path: string,
  gzipped: boolean,
  writer: TreeWriter,
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<void> {
  // The oldest tars have no magic. Their checksum is verified even so.
  const entries = extract({ allowUnknownFormat: true } as object)
  const source = createReadStream(path)
  const bounded = boundedStream(limits)
  const feeding = gzipped
    ? pipeline(source, createGunzip(), bounded, entries, { signal })
    : pipeline(source, bounded, entries, { signal })
  feeding.catch(() => {})
  try {
    for await (const entry of entries) {
      // Errors after reading has been given up have no other listener.
      entry.on('error', () => {})
      await takeEntry(entry.header, entry as AsyncIterable<Uint8Array>, writer)
    }
    await feeding
  } catch (error) {
    signal.throwIfAborted()
    // If the stream failed, its error is more informative than that of the entry it cut short.
    const cause = await feeding.then(
      () => error,
      (failure) => (error instanceof SourceError ? error : failure),
    )
    throw cause instanceof SourceError || isSystemError(cause) ? cause : damaged(cause)
  } finally {
    entries.destroy()
    source.destroy()
  }
}

async function takeEntry(
  header: Header,
  content: AsyncIterable<Uint8Array>,
  writer: TreeWriter,
): Promise<void> {
  const { name, type, size = 0, mode = 0o644, linkname } = header
  if (header.pax && Object.keys(header.pax).some((key) => key.startsWith('GNU.sparse.'))) {
    throw new SourceError(`Its entry ${quoted(name)} is a sparse file, which is not taken.`)
  }
  switch (type) {
    // The oldest form of a directory is a file whose name ends with a slash.
    case 'file':
    case 'contiguous-file':
      if (name.endsWith('/')) await writer.directory(name)
      else return await writer.file({ name, size, mode }, content)
      break
    case 'directory':
      await writer.directory(name)
      break
    case 'symlink':
      await writer.link(name, linkname ?? '')
      break
    case 'link':
      await writer.hardLink(name, linkname ?? '')
      break
    default:
      throw new SourceError(
        `Its entry ${quoted(name)} is ${KINDS[String(type)] ?? 'of a kind that is not taken'}.`,
      )
  }
  for await (const _ of content) {
    // Content of an entry that should have none is skipped.
  }
}

const KINDS: Record<string, string> = {
  'character-device': 'a device',
  'block-device': 'a device',
  fifo: 'a pipe',
}

/** Ends a stream that unpacks to more than files within the limits could. */
function boundedStream(limits: SourceLimits): Transform {
  let left = limits.bytes + limits.entries * ENTRY_OVERHEAD
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      left -= chunk.length
      if (left < 0) done(tooLarge(limits))
      else done(null, chunk)
    },
  })
}
