import { createReadStream } from 'node:fs'
import { Transform, type TransformCallback } from 'node:stream'
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
 * Bytes of the stream that belong to no entry: what is read ahead, and the zeros at the end, which tar pads to the size
 * of a tape's record.
 */
const STREAM_OVERHEAD = 2 * 2 ** 20

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
  const bounded = new BoundedStream(limits)
  const feeding = gzipped
    ? pipeline(source, createGunzip(), bounded, entries, { signal })
    : pipeline(source, bounded, entries, { signal })
  feeding.catch(() => {})
  try {
    for await (const entry of entries) {
      // Errors after reading has been given up have no other listener.
      entry.on('error', () => {})
      bounded.expect(entry.header)
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
      // The content of such an entry would never end.
      if (size > 0) throw new SourceError(`Its entry ${quoted(name)} is a directory that announces content.`)
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

const UNANNOUNCED = 'It unpacks to more than the files in it have: it is damaged, or made to take time.'

/**
 * Ends a stream that has more than its limits allow, or than the entries found in it announce. A gzip of zeros is a
 * thousand times smaller than what it unpacks to, and zeros between entries are no content that another limit counts.
 */
class BoundedStream extends Transform {
  readonly #limits: SourceLimits
  #announced = STREAM_OVERHEAD
  #bytes = 0

  constructor(limits: SourceLimits) {
    super()
    this.#limits = limits
  }

  /** Lets the content of an entry pass. Only files have any. */
  expect({ type, size = 0 }: Header): void {
    const isFile = type === 'file' || type === 'contiguous-file'
    this.#announced += ENTRY_OVERHEAD + (isFile ? size : 0)
  }

  override _transform(chunk: Uint8Array, _encoding: string, done: TransformCallback): void {
    const { bytes, entries } = this.#limits
    this.#bytes += chunk.length
    // Files that are left out count here only.
    if (this.#bytes > bytes + entries * ENTRY_OVERHEAD) done(tooLarge(this.#limits))
    else if (this.#bytes > this.#announced) done(new SourceError(UNANNOUNCED))
    else done(null, chunk)
  }
}
