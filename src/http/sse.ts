/**
 * Sends one server-sent event; resolves when the client has taken enough to send more.
 *
 * @param id what a client that was cut off says in `Last-Event-ID`; without line ends
 */
export type SendEvent = (event: string, data: unknown, id?: string) => Promise<void> | void

/** Comment lines that keep proxies from giving up on a quiet stream. */
const KEEP_ALIVE_MS = 15_000

/** Bytes that may wait for a slow client before `send` makes the sender wait. */
const HIGH_WATER = 256 * 1024

/**
 * Answers with an event stream (HTML standard, 9.2). `run` sends events and ends the stream when it
 * resolves; its signal fires when the client has gone.
 */
export function eventStream(run: (send: SendEvent, gone: AbortSignal) => Promise<void>): Response {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  let room: (() => void) | null = null
  let keepAlive: ReturnType<typeof setInterval> | undefined

  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: SendEvent = (event, data, id) => {
          if (gone.signal.aborted) return
          const head = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
          controller.enqueue(encoder.encode(`${head}\ndata: ${JSON.stringify(data)}\n\n`))
          if ((controller.desiredSize ?? 0) > 0) return
          const { promise, resolve } = Promise.withResolvers<void>()
          room = resolve
          return promise
        }
        const comment = () => controller.enqueue(encoder.encode(': \n\n'))
        // The head of an answer goes out with its first byte: a client learns at once that it is connected.
        comment()
        keepAlive = setInterval(() => {
          if (!gone.signal.aborted && (controller.desiredSize ?? 0) > 0) comment()
        }, KEEP_ALIVE_MS)
        run(send, gone.signal)
          // A stream that is at its end before its answer is on the way would go out as one piece, with a length.
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          .then(() => gone.signal.aborted || controller.close())
          .catch((error) => gone.signal.aborted || controller.error(error))
          .finally(() => clearInterval(keepAlive))
      },
      pull() {
        room?.()
        room = null
      },
      cancel() {
        clearInterval(keepAlive)
        gone.abort()
        room?.()
      },
    },
    { highWaterMark: HIGH_WATER, size: (chunk) => chunk?.byteLength ?? 0 },
  )
  return new Response(stream, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  })
}

/** Whether the client asked for an event stream. */
export const wantsEventStream = (accept: string | undefined | null): boolean =>
  accept
    ?.split(',')
    .some((range) => /^\s*text\/event-stream\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?$/i.test(range)) ?? false
