/** Sends bytes, which must not change. Resolves when the client can take more. */
export type SendBytes = (bytes: Uint8Array) => Promise<void> | void

/**
 * Produces a response's bytes. The response ends when this resolves, and breaks off if it rejects. The signal fires when
 * the client disconnects. `hasRoom` reports whether the client takes bytes at once.
 */
export type ByteStreamRun = (send: SendBytes, gone: AbortSignal, hasRoom: () => boolean) => Promise<void>

/** Bytes that may be buffered for a slow client before `send` waits. */
const HIGH_WATER = 256 * 1024

/**
 * Responds with bytes as they are produced.
 *
 * @param until watches for a reason to end the response early, and calls `end` then: with bytes they are the last, without
 * it breaks off. Returns a function that stops watching
 */
export function byteStream(
  type: string,
  run: ByteStreamRun,
  until: (end: (last?: Uint8Array) => void) => () => void,
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
        const hasRoom = (): boolean => (controller.desiredSize ?? 0) > 0
        const send: SendBytes = (bytes) => {
          if (gone.signal.aborted || bytes.length === 0) return
          controller.enqueue(bytes)
          if (hasRoom()) return
          const { promise, resolve } = Promise.withResolvers<void>()
          room = resolve
          return promise
        }
        const leave = (close: () => void): void => {
          stopWatching()
          if (gone.signal.aborted) return
          gone.abort()
          wake()
          close()
        }
        stopWatching = until((last) =>
          leave(() => {
            // Without an error, which would be printed, Bun only resets the connection.
            if (last === undefined) return controller.error()
            controller.enqueue(last)
            controller.close()
          }),
        )
        run(send, gone.signal, hasRoom)
          // If the stream ended before its response is sent, Bun would send it as a single body with a length.
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          .then(() => {
            stopWatching()
            if (!gone.signal.aborted) controller.close()
          })
          .catch((error) => leave(() => controller.error(error)))
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
