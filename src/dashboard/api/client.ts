import type { EventSourceMessage } from 'eventsource-parser'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import {
  type ArgumentsOf,
  type CallId,
  type HttpRequest,
  type ResponseOf,
  requestOf,
  type StreamEventOf,
  type StreamId,
} from '../../route-client/client.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import type { PageContext, Session } from './session.ts'

/** Calls the API and the control API of the instance with the rights of the browser's session. */
export class ApiClient {
  readonly #csrf: string
  readonly #session: Session

  constructor({ csrf }: Pick<PageContext, 'csrf'>, session: Session) {
    this.#csrf = csrf
    this.#session = session
  }

  /**
   * Calls an operation.
   *
   * @throws ApiFailure if the response is an error, or none arrived
   */
  async call<Id extends CallId>(id: Id, ...given: ArgumentsOf<Id>): Promise<ResponseOf<Id>> {
    const response = await this.send(requestOf(id, ...given))
    const text = await response.text()
    return (text === '' ? undefined : JSON.parse(text)) as ResponseOf<Id>
  }

  /**
   * Opens the event stream of an operation. It ends with the response, or when `signal` aborts it. The id of an event is
   * empty if it has none.
   *
   * @throws ApiFailure as `call` does
   */
  async *stream<Id extends CallId & StreamId>(
    id: Id,
    ...given: ArgumentsOf<Id>
  ): AsyncGenerator<StreamEventOf<Id> & { readonly id: string }> {
    const response = await this.send(requestOf(id, ...given), { accept: 'text/event-stream' })
    for await (const { event, data, id = '' } of streamEvents(response))
      yield { event, data: JSON.parse(data), id } as StreamEventOf<Id> & { readonly id: string }
  }

  /**
   * Sends a request and returns its response, whatever its body is.
   *
   * @throws ApiFailure if the response is an error, or none arrived
   */
  async send(request: HttpRequest, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const response = await this.request(request, headers)
    if (response.ok) return response
    if (response.status === 401) void this.#session.leaveIfOver()
    throw await responseFailure(response)
  }

  /**
   * Sends a request and returns its response, also an error.
   *
   * @throws ApiFailure if no response arrived
   */
  async request(
    { method, path, body, form, bytes, signal }: HttpRequest,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const content = form ?? bytes ?? (body === undefined ? null : JSON.stringify(body))
    return fetch(path, {
      method,
      body: content as BodyInit | null,
      signal: signal ?? null,
      headers: {
        'x-berth-client': 'dashboard',
        'x-berth-csrf': this.#csrf,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error
      throw new ApiFailure(0, 'unreachable', 'berth does not respond. It may have been stopped.')
    })
  }
}

/** Reads the events of a response that is an event stream. */
export async function* streamEvents({ body }: Response): AsyncGenerator<EventSourceMessage> {
  const text = body?.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
  yield* text?.pipeThrough(new EventSourceParserStream()) ?? []
}

/** An error response, with its cause and remedy. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure'

  /**
   * @param status 0 if there was no response
   * @param code the machine-readable code (specification, "Errors")
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Returns the failure of a response. */
export async function responseFailure(response: Response): Promise<ApiFailure> {
  const body: unknown = await response.json().catch(() => null)
  const { error, message } = fieldsOf(body)
  return new ApiFailure(
    response.status,
    typeof error === 'string' ? error : 'unknown',
    typeof message === 'string' ? message : `The response was ${response.status}.`,
  )
}

/** Milliseconds before a stream that was lost is opened again. */
const RETRY_MS = 2_000

/**
 * Follows a stream until it has ended. One that is lost is opened again.
 *
 * @param read reads the stream to its end, from where it was lost; fails if it is lost
 * @param onFailure called with why it cannot be read at present
 * @returns a function that ends it
 */
export function followUntilEnd(
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
