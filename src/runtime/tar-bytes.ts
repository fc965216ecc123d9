import type { Pack } from 'tar-stream'

/**
 * Yields the bytes of a tar while a function fills it, at the pace of the reader. If the reader stops early, the archive
 * is destroyed and the function has ended before this returns.
 *
 * @param fill adds all entries, and rejects once the archive is destroyed
 * @throws what `fill` throws
 */
export async function* tarBytes(tar: Pack, fill: () => Promise<void>): AsyncGenerator<Uint8Array> {
  const filling = fill().then(() => tar.finalize())
  filling.catch((error: Error) => tar.destroy(error))
  try {
    for await (const chunk of tar as AsyncIterable<Uint8Array>) yield chunk
    await filling
  } finally {
    tar.destroy()
    // It may wait for a reader that has gone away.
    await filling.catch(() => {})
  }
}
