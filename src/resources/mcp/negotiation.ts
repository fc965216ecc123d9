import { isAccepted } from '../../http/accept.ts'
import { EVENT_STREAM_TYPE } from '../../http/sse.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { eventsOf, isEventStream } from './events.ts'

const JSON_TYPE = 'application/json'

/** What a client of the endpoint accepts. */
export interface AcceptedTypes {
  readonly json: boolean
  readonly stream: boolean
}

/** Returns which of the two types of MCP's responses a request accepts. */
export function acceptedTypes({ headers }: Request): AcceptedTypes {
  const accept = headers.get('accept')
  return { json: isAccepted(accept, JSON_TYPE), stream: isAccepted(accept, EVENT_STREAM_TYPE) }
}

/**
 * Returns a request with an Accept header that names both types, for the SDK, which refuses any other. Wildcards cover
 * them too, and a client may accept one of them alone.
 */
export function withBothTypes(request: Request): Request {
  const headers = new Headers(request.headers)
  headers.set('accept', `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`)
  return new Request(request.url, { method: request.method, headers, signal: request.signal })
}

/**
 * Turns an event stream into JSON, for a client that accepts no stream: the responses alone, once the last is there.
 * Notifications of progress are left out.
 *
 * @param isBatch whether the client sent an array and gets one
 */
export async function asJson(response: Response, { signal }: Request, isBatch: boolean): Promise<Response> {
  if (!isEventStream(response)) return response
  const responses: unknown[] = []
  for await (const { data } of eventsOf(response, signal))
    if (fieldsOf(data).method === undefined) responses.push(data)
  const headers = new Headers(response.headers)
  headers.set('content-type', JSON_TYPE)
  return new Response(JSON.stringify(isBatch ? responses : responses[0]), { headers })
}
