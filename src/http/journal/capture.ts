import { Elysia } from 'elysia'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Callers } from '../access.ts'
import type { BodyWitness } from '../body.ts'
import { BODY_KEPT, type KeptBody, keptBody } from './entry.ts'
import type { Journal } from './journal.ts'

/** What was seen of a request under way. */
interface Seen {
  body: KeptBody | null
  /** The JSON of its answer; null until it is written. */
  text: string | null
  /** The `x-request-id` of its answer. */
  id: string
}

const SEEN = Symbol('seen')

/** It is put on the request itself: a WeakMap would cost more than all the rest that is done for an entry. */
interface SeenRequest extends Request {
  [SEEN]?: Seen
}

/** Keeps what was read of a request's body until it is answered. */
export const witnessBody: BodyWitness = (request: SeenRequest, content, type) => {
  request[SEEN] = { body: keptBody(content, type), text: null, id: '' }
}

const DOCUMENT = /^[a-z]+:\/\/[^/]*\/(?:docs(?:[/?]|$)|openapi\.json|favicon\.ico|$)/

/** As Elysia's own answers say it. */
const JSON_TYPE = 'application/json;charset=utf-8'

/**
 * Writes the JSON of answers, which Elysia would do at the same cost, so that the text is at hand for their entries: to
 * read it from an answer that was made costs far more.
 */
export const answerWriter = () =>
  new Elysia({ name: 'berth/journal' }).mapResponse({ as: 'global' }, ({ request, responseValue, set }) => {
    if (typeof responseValue !== 'object' || responseValue === null) return
    if (Object.getPrototypeOf(responseValue) !== Object.prototype) return
    const text = JSON.stringify(responseValue)
    const id = String(set.headers['x-request-id'])
    const seen = (request as SeenRequest)[SEEN]
    if (seen === undefined) {
      ;(request as SeenRequest)[SEEN] = { body: null, text, id }
    } else {
      seen.text = text
      seen.id = id
    }
    set.headers['content-type'] = JSON_TYPE
    // Of a text Elysia makes an answer with all that `set` says; one that was made here it would take apart again.
    return text as unknown as Response
  })

/** What an entry is made from. */
export interface Captured {
  journal: Journal
  callers: Callers
  clock: Clock
  logger: Logger
}

type Handle = (request: Request) => Response | Promise<Response>

/**
 * Keeps requests and their answers. It stands in the way of every request: what it takes are references; an answer
 * that streams, or comes from a file, passes untouched.
 */
export function recorder(captured: Captured, answer: Handle): Handle {
  const { clock, logger } = captured
  const keep = (request: Request, at: number, began: number, response: Response): Response => {
    try {
      add(captured, request, at, began, response)
    } catch (error) {
      logger.error('a request could not be put down in the journal', { error })
    }
    return response
  }
  return (request) => {
    // Documents are for browsers: what these ask for would stand between what a client did.
    if (DOCUMENT.test(request.url)) return answer(request)
    const at = clock.now()
    const began = performance.now()
    const answering = answer(request)
    return answering instanceof Promise
      ? answering.then((response) => keep(request, at, began, response))
      : keep(request, at, began, answering)
  }
}

/** Milliseconds within which hardly anybody gives up an answer: to ask would cost more than the rest. */
const SOON_MS = 20

function add(
  { journal, callers }: Captured,
  request: SeenRequest,
  at: number,
  began: number,
  answer: Response,
): void {
  const ms = performance.now() - began
  const seen = request[SEEN]
  const written = seen !== undefined && seen.text !== null
  const type = written ? JSON_TYPE : (answer.headers.get('content-type') ?? '')
  const text = written ? seen.text : inMemory(answer, type)
  journal.add({
    id: written ? seen.id : (answer.headers.get('x-request-id') ?? ''),
    at,
    ms,
    method: request.method,
    url: request.url,
    status: answer.status,
    caller: callers.of(request),
    request: seen === undefined ? null : seen.body,
    response: text === null || text.length <= BODY_KEPT ? text : keptBody(text, type),
    responseType: type,
    aborted: ms > SOON_MS && request.signal.aborted,
  })
}

/** The JSON of an answer that no route gave, such as that of an unknown path; null for none. */
function inMemory(answer: Response, type: string): string | null {
  if (!type.startsWith('application/json')) return null
  const reading = answer.clone().text()
  const text: unknown = Bun.peek(reading)
  if (typeof text === 'string') return text
  reading.catch(() => {})
  return null
}
