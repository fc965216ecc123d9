import type { Header, Pack } from 'tar-stream'

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

/** The type of a file in a mode: without it, tar-stream takes a mode of 0 for none. */
const FILE_TYPE = 0o100000

/**
 * Adds an entry to a tar, at the pace of its reader; resolves when the next may follow.
 *
 * @param content of a file, as many bytes as its header says; null for other entries
 * @throws what `content` throws; Error if the archive is not read any more
 */
export function addEntry(
  tar: Pack,
  header: Partial<Header> & Pick<Header, 'name'>,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { mode } = header
    const whole = mode === undefined ? header : { ...header, mode: mode | FILE_TYPE }
    const sink = tar.entry(whole, (error?: Error | null) => (error ? reject(error) : resolve()))
    sink.on('error', reject)
    if (content === null) return
    // An archive that is given up closes the sink, which then never drains.
    let proceed = (): void => {}
    for (const event of ['drain', 'close']) sink.on(event, () => proceed())
    const fill = async (): Promise<void> => {
      for await (const chunk of content) {
        const isFull = !sink.write(chunk)
        if (isFull && !sink.destroyed)
          await new Promise<void>((hasRoom) => {
            proceed = hasRoom
          })
        if (sink.destroyed) return
      }
      sink.end(null)
    }
    fill().catch(reject)
  })
}
