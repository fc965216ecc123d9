import { ConnectionError } from './errors.js'

/** An event of a stream of server-sent events. */
export interface StreamEvent {
  /** What to send as `Last-Event-ID` to go on after it; null if the stream cannot go on. */
  readonly id: string | null
  /** Its name; `message` if it has none. */
  readonly event: string
  readonly data: string
}

/**
 * Reads server-sent events. Comments, which keep the connection alive, and unknown fields are skipped.
 *
 * @throws ConnectionError if the connection breaks off; the reason of the signal if that aborts
 */
export async function* readEvents(
  response: Response,
  signal?: AbortSignal | null,
): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  let event = ''
  let id: string | null = null
  let data: string[] = []
  for await (const bytes of readBytes(response, signal)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') }
        event = ''
        data = []
        continue
      }
      const colon = line.indexOf(':')
      const field = colon === -1 ? line : line.slice(0, colon)
      const text = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'event') event = text
      else if (field === 'data') data.push(text)
      else if (field === 'id' && !text.includes('\0')) id = text
    }
  }
}

/**
 * Reads the bytes of a response.
 *
 * @throws ConnectionError if the connection breaks off; the reason of the signal if that aborts
 */
export async function* readBytes(
  response: Response,
  signal?: AbortSignal | null,
): AsyncGenerator<Uint8Array> {
  if (!response.body) return
  const reader = response.body.getReader()
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw new ConnectionError('The connection broke off before the response was whole.', {}, { cause: error })
  } finally {
    // Closes the connection if the reader went away before the end.
    await reader.cancel().catch(() => {})
  }
}
