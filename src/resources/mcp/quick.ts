import { isEventStream } from './events.ts'

/** Milliseconds after which an answer begins, though nothing of it is there: its client then sees that it is under way. */
const PATIENCE_MS = 1_000

/** One message alone, as the SDK writes it. */
const ONLY_MESSAGE = /^event: message\ndata: (.*)\n\n$/

/** A comment of an event stream, which clients pass over. Without a byte of its body the head of an answer is not sent. */
const UNDER_WAY = new TextEncoder().encode(': under way\n\n')

const LATE = Symbol('late')

/**
 * Makes of a stream that is over at once, with one message in it, an answer with that message as JSON: most calls take
 * milliseconds, and a stream adds a fifth to them. What comes later, or bit by bit, is passed on as it comes. Either
 * is what a client must take (MCP, "Streamable HTTP").
 */
export async function sentWhole(answer: Response): Promise<Response> {
  if (!isEventStream(answer) || answer.body === null) return answer
  const { headers } = answer
  const reader = answer.body.getReader() as Reader
  const first = reader.read()
  const begun = await within(PATIENCE_MS, first)
  if (begun === LATE) return new Response(streamOf(reader, [UNDER_WAY_READ, first]), { headers })
  if (begun.done) return new Response(streamOf(reader, [first]), { headers })
  const second = reader.read()
  const next = await within(0, second)
  if (next === LATE || !next.done) return new Response(streamOf(reader, [first, second]), { headers })
  const [, message] = ONLY_MESSAGE.exec(new TextDecoder().decode(begun.value)) ?? []
  if (message === undefined) return new Response(begun.value, { headers })
  return new Response(message, {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  })
}

const UNDER_WAY_READ = Promise.resolve({ done: false as const, value: UNDER_WAY })

type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>

/** What comes within so many milliseconds; 0 for what is there already. */
async function within<Value>(ms: number, value: Promise<Value>): Promise<Value | typeof LATE> {
  const { promise: late, resolve } = Promise.withResolvers<typeof LATE>()
  const timer = setTimeout(resolve, ms, LATE)
  const came = await Promise.race([value, late])
  clearTimeout(timer)
  return came
}

/** What was begun to be read, and the rest. */
function streamOf(reader: Reader, begun: ReturnType<Reader['read']>[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await (begun.shift() ?? reader.read())
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
