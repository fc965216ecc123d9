/** Sends bytes, which must not change. Resolves when the client can take more. */
export type SendBytes = (bytes: Uint8Array) => Promise<void> | void

/**
 * Produces a response's bytes. The response ends when this resolves, and breaks off if it rejects. The signal fires when
 * the client disconnects.
 */
export type ByteStreamRun = (send: SendBytes, gone: AbortSignal) => Promise<void>

/** Bytes that may be buffered for a slow client before `send` waits. */
const HIGH_WATER = 256 * 1024

/**
 * Responds with bytes as they are produced.
 *
 * @param until watches for a reason to break the response off early, and calls `end` then; returns a function that stops
 * watching
 */
export function byteStream(
  type: string,
  run: ByteStreamRun,
  until: (end: () => void) => () => void,
): Response {
  const gone = new AbortController()
  let room: (() => void) | null = null
  let stopWatching = (): void => {}
  const wake = (): void => {
    room?.()
    room = null
  }
  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: SendBytes = (bytes) => {
          if (gone.signal.aborted || bytes.length === 0) return
          controller.enqueue(bytes)
          if ((controller.desiredSize ?? 0) > 0) return
          const { promise, resolve } = Promise.withResolvers<void>()
          room = resolve
          return promise
        }
        const breakOff = (error?: unknown): void => {
          stopWatching()
          if (gone.signal.aborted) return
          gone.abort()
          wake()
          // An error is printed; without one Bun only resets the connection.
          controller.error(error)
        }
        stopWatching = until(breakOff)
        run(send, gone.signal)
          // If the stream ended before its response is sent, Bun would send it as a single body with a length.
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          .then(() => {
            stopWatching()
            if (!gone.signal.aborted) controller.close()
          })
          .catch(breakOff)
      },
      pull: wake,
      cancel() {
        stopWatching()
        gone.abort()
        wake()
      },
    },
    { highWaterMark: HIGH_WATER, size: (chunk) => chunk?.byteLength ?? 0 },
  )
  return new Response(stream, {
    headers: { 'content-type': type, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  })
}
