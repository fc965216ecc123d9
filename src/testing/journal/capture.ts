import { Elysia } from 'elysia'
import type { Callers } from '../../http/access.ts'
import type { Clock } from '../../runtime/clock.ts'
import { type Entry, JSON_TYPE, keptBody } from './entry.ts'
import type { Journal } from './journal.ts'

/** An entry whose request is under way. */
type OpenEntry = { -readonly [Field in keyof Entry]: Entry[Field] }

/**
 * Where Elysia keeps what an answer is to have. It is each request's own, and cheaper to reach than what could be kept
 * beside the request, which is an object of Bun's.
 */
interface Settings {
  headers: object
  status?: unknown
  /** The entry of the request. */
  entry?: OpenEntry
}

/** Milliseconds within which hardly anybody gives up an answer: to ask costs more than the rest. */
const SOON_MS = 20

/** Characters of the texts in an answer from which on it is written at once, so that it is kept no longer than its beginning. */
const LONG = 16 * 1024

/** What entries are made of. */
export interface Captured {
  journal: Journal
  callers: Callers
  clock: Clock
}

type Handle = (request: Request) => Response | Promise<Response>

/**
 * Keeps requests and their answers. It stands in the way of every request, so that it takes references and leaves the
 * rest to whoever reads; an answer that streams, or comes from a file, passes untouched.
 */
export class Capture {
  readonly #captured: Captured

  constructor(captured: Captured) {
    this.#captured = captured
  }

  /** A request has come. */
  readonly begin = (set: Settings, request: Request): void => {
    set.entry = opened(request, this.#captured.clock)
  }

  /** Something of its body was read: its bytes, or a form's fields as JSON. */
  readonly body = (set: Settings, content: Uint8Array | string, type: string): void => {
    if (set.entry) set.entry.request = keptBody(content, type)
  }

  /** Has the answers of an app kept. */
  plugin() {
    const { journal, callers } = this.#captured
    return new Elysia({ name: 'berth/journal' }).mapResponse(
      { as: 'global' },
      ({ request, responseValue, set }) => {
        const { entry } = set as Settings
        if (entry === undefined) return
        entry.id = String(set.headers['x-request-id'])
        entry.ms = performance.now() - entry.began
        entry.caller = callers.of(request)
        entry.aborted = entry.ms > SOON_MS && request.signal.aborted
        if (typeof set.status === 'number') entry.status = set.status
        const text = take(entry, responseValue)
        journal.add(entry)
        if (text === null) return
        set.headers['content-type'] = JSON_TYPE
        // Of a text Elysia makes an answer with all that `set` says; one that was made here it would take apart again.
        return text as unknown as Response
      },
    )
  }

  /**
   * Has requests answered by what stands before the app, such as faults, and keeps those that the app never saw.
   *
   * @param before answers a request, or hands it to what it is given
   */
  around(before: (request: Request, app: Handle) => Promise<Response>, app: Handle): Handle {
    const { journal, callers, clock } = this.#captured
    return async (request) => {
      const entry = opened(request, clock)
      let seen = false
      const answer = await before(request, (passed) => {
        seen = true
        return app(passed)
      })
      if (seen) return answer
      takeResponse(entry, answer)
      entry.id = answer.headers.get('x-request-id') ?? ''
      entry.ms = performance.now() - entry.began
      entry.caller = callers.of(request)
      entry.aborted = request.signal.aborted
      journal.add(entry)
      return answer
    }
  }
}

const opened = ({ method, url }: Request, clock: Clock): OpenEntry => ({
  id: '',
  at: clock.now(),
  began: performance.now(),
  ms: 0,
  method,
  url,
  status: 200,
  caller: undefined,
  request: null,
  response: null,
  unwritten: null,
  responseType: '',
  aborted: false,
})

/** Takes an answer into its entry. @returns its JSON where that was written on the way */
function take(entry: OpenEntry, answer: unknown): string | null {
  if (answer instanceof Response) takeResponse(entry, answer)
  if (typeof answer !== 'object' || answer === null) return null
  // What Elysia's `status(201, …)` makes.
  const { code, response } = answer as { code?: unknown; response?: unknown }
  const isStatus = typeof code === 'number' && !isPlain(answer)
  const value = isStatus ? response : answer
  if (isStatus) entry.status = code
  if (!isPlain(value)) return null
  entry.responseType = JSON_TYPE
  // Elysia's own writing, which is faster, is left to it; but of a failure it would make an empty answer.
  if (entry.status < 400 && !hasLongText(value)) {
    entry.unwritten = value
    return null
  }
  const text = JSON.stringify(value)
  entry.response = keptBody(text, JSON_TYPE)
  return isStatus ? null : text
}

function takeResponse(entry: OpenEntry, answer: Response): void {
  entry.status = answer.status
  entry.responseType = answer.headers.get('content-type') ?? ''
  if (!entry.responseType.startsWith('application/json')) return
  const reading = answer.clone().text()
  const text: unknown = Bun.peek(reading)
  if (typeof text === 'string') entry.response = keptBody(text, entry.responseType)
  else reading.catch(() => {})
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** Whether it is the answer of a command or a file with much in it; what lies deeper is not looked at. */
function hasLongText(answer: Readonly<Record<string, unknown>>): boolean {
  for (const name in answer) {
    const value = answer[name]
    if (typeof value === 'string' && value.length > LONG) return true
  }
  return false
}
