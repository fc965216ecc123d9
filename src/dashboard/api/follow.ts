import { messageOf } from './failure.ts'

/** Milliseconds before a stream that was lost is opened again. */
const RETRY_MS = 2_000

/**
 * Follows a stream until it has ended. One that is lost is opened again.
 *
 * @param read reads the stream to its end, from where it was lost; fails if it is lost
 * @param onFailure called with why it cannot be read at present
 * @returns a function that ends it
 */
export function followStream(
  read: (signal: AbortSignal) => Promise<void>,
  onFailure: (why: string) => void,
): () => void {
  const following = new AbortController()
  const { signal } = following
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        return await read(signal)
      } catch (error) {
        if (!signal.aborted) onFailure(messageOf(error))
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
  void run()
  return () => following.abort()
}
