import { BerthError, ConnectionError } from './errors.js'

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
  if (!response.body) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let event = ''
  let id: string | null = null
  let data: string[] = []
  try {
    while (true) {
      const { done, value } = await read(reader, signal)
      if (done) return
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
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
  } finally {
    // Closes the connection if the reader went away before the end.
    await reader.cancel().catch(() => {})
  }
}

/** Reads the next bytes. */
export async function read(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal?: AbortSignal | null,
): Promise<{ done: boolean; value?: Uint8Array | undefined }> {
  try {
    return await reader.read()
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (error instanceof BerthError) throw error
    throw new ConnectionError('The connection broke off before the response was whole.', {}, { cause: error })
  }
}
