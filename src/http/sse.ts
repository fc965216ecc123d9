import type { BerthError } from '../errors.ts'

/**
 * Sends one server-sent event; resolves when the client has taken enough to send more.
 *
 * @param id what a client that was cut off says in `Last-Event-ID`; without line ends
 */
export type SendEvent = (event: string, data: unknown, id?: string) => Promise<void> | void

/** What an event stream sends, and until when: it is over when this resolves, and its signal fires when nobody takes more. */
export type StreamRun = (send: SendEvent, gone: AbortSignal) => Promise<void>

/**
 * What may end an event stream before its time: calls `end` with what to say as its last event, `error`.
 *
 * @returns leaves off
 */
export type StreamEnd = (end: (why: BerthError) => void) => () => void

/** Comment lines that keep proxies from giving up on a quiet stream. */
const KEEP_ALIVE_MS = 15_000

/** Bytes that may wait for a slow client before `send` makes the sender wait. */
const HIGH_WATER = 256 * 1024

/** Answers with an event stream (HTML standard, 9.2). */
export function eventStream(run: StreamRun, until?: StreamEnd): Response {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  let room: (() => void) | null = null
  let keepAlive: ReturnType<typeof setInterval> | undefined
  let leave: (() => void) | undefined
  const settle = (): void => {
    clearInterval(keepAlive)
    leave?.()
  }
  const cut = (): void => {
    settle()
    gone.abort()
    room?.()
  }

  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: SendEvent = (event, data, id) => {
          if (gone.signal.aborted) return
          controller.enqueue(encoder.encode(eventText(event, data, id)))
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
        leave = until?.((why) => {
          if (gone.signal.aborted) return
          controller.enqueue(encoder.encode(eventText('error', why.toBody())))
          cut()
          controller.close()
        })
        run(send, gone.signal)
          // A stream that is at its end before its answer is on the way would go out as one piece, with a length.
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          // Settled first: what is closed takes no event any more.
          .then(() => {
            settle()
            if (!gone.signal.aborted) controller.close()
          })
          .catch((error) => {
            settle()
            if (!gone.signal.aborted) controller.error(error)
          })
      },
      pull() {
        room?.()
        room = null
      },
      cancel: cut,
    },
    { highWaterMark: HIGH_WATER, size: (chunk) => chunk?.byteLength ?? 0 },
  )
  return new Response(stream, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  })
}

function eventText(event: string, data: unknown, id?: string): string {
  const head = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
  return `${head}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Whether the client asked for an event stream. */
export const wantsEventStream = (accept: string | undefined | null): boolean =>
  accept
    ?.split(',')
    .some((range) => /^\s*text\/event-stream\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?$/i.test(range)) ?? false
