import { Elysia } from 'elysia'
import type { Callers } from '../../http/authentication.ts'
import { namedClient } from '../../http/own-client.ts'
import type { Clock } from '../../runtime/clock.ts'
import { type JournalEntry, JSON_TYPE, keptBody } from './entry.ts'
import type { RequestJournal } from './journal.ts'

/** An entry whose request is not finished. */
type OpenEntry = { -readonly [Field in keyof JournalEntry]: JournalEntry[Field] }

/**
 * The object in which Elysia keeps the settings of a response. It belongs to a single request, and a property of it
 * is cheaper than a map by request.
 */
interface ResponseSettings {
  headers: object
  status?: unknown
  /** The entry of the request. */
  entry?: OpenEntry
}

/** Milliseconds within which clients hardly ever disconnect. Checking for it would cost more than the rest. */
const SOON_MS = 20

/**
 * Characters of the texts in a response from which it is serialized at once, so the journal keeps only its beginning.
 */
const LONG_TEXT = 16 * 1024

/** Dependencies of the capture. */
export interface CaptureOptions {
  journal: RequestJournal
  callers: Callers
  clock: Clock
}

type Handle = (request: Request) => Response | Promise<Response>

/**
 * Captures requests and responses for the journal. Every request passes here, so it only takes references; readers do
 * the rest. Streams and files pass unchanged.
 */
export class Capture {
  readonly #options: CaptureOptions

  constructor(options: CaptureOptions) {
    this.#options = options
  }

  /** Begins the entry of a request. */
  readonly begin = (set: ResponseSettings, request: Request): void => {
    set.entry = opened(request, this.#options.clock)
  }

  /** Adds what was read of a request's body: its bytes, or a form's fields as JSON. */
  readonly body = (set: ResponseSettings, content: Uint8Array | string, type: string): void => {
    if (set.entry) set.entry.request = keptBody(content, type)
  }

  /** Returns a plugin that captures the responses of an app. */
  plugin() {
    const { journal, callers } = this.#options
    return new Elysia({ name: 'berth/journal' }).mapResponse(
      { as: 'global' },
      ({ request, responseValue, set }) => {
        const { entry } = set as ResponseSettings
        if (entry === undefined) return
        entry.id = String(set.headers['x-request-id'])
        entry.ms = performance.now() - entry.began
        entry.caller = callers.of(request)
        entry.aborted = entry.ms > SOON_MS && request.signal.aborted
        if (typeof set.status === 'number') entry.status = set.status
        const text = takeValue(entry, responseValue)
        journal.add(entry)
        if (text === null) return
        set.headers['content-type'] = JSON_TYPE
        // Elysia makes a response of a text, with the settings in `set`. It would copy a response that is made here.
        return text as unknown as Response
      },
    )
  }

  /**
   * Wraps an app and a layer before it, such as faults, and also captures requests that never reach the app.
   *
   * @param before responds to a request, or passes it to the app that it is given
   */
  around(before: (request: Request, app: Handle) => Promise<Response>, app: Handle): Handle {
    const { journal, callers, clock } = this.#options
    return async (request) => {
      const entry = opened(request, clock)
      let seen = false
      const response = await before(request, (passed) => {
        seen = true
        return app(passed)
      })
      if (seen) return response
      takeValue(entry, response)
      entry.id = response.headers.get('x-request-id') ?? ''
      entry.ms = performance.now() - entry.began
      entry.caller = callers.of(request)
      entry.aborted = request.signal.aborted
      journal.add(entry)
      return response
    }
  }
}

const opened = ({ method, url, headers }: Request, clock: Clock): OpenEntry => ({
  id: '',
  at: clock.now(),
  began: performance.now(),
  ms: 0,
  method,
  client: namedClient(headers),
  url,
  status: 200,
  caller: undefined,
  request: null,
  response: null,
  unserialized: null,
  responseType: '',
  aborted: false,
})

/**
 * Adds a handler's return value to its entry.
 *
 * @returns its JSON if it had to be serialized
 */
function takeValue(entry: OpenEntry, returned: unknown): string | null {
  if (returned instanceof Response) takeResponse(entry, returned)
  if (typeof returned !== 'object' || returned === null) return null
  // The value that Elysia's `status(201, …)` returns.
  const { code, response } = returned as { code?: unknown; response?: unknown }
  const isStatus = typeof code === 'number' && !isPlain(returned)
  const value = isStatus ? response : returned
  if (isStatus) entry.status = code
  if (!isPlain(value)) return null
  entry.responseType = JSON_TYPE
  // Elysia serializes faster itself. But it would send an empty response for a failure.
  if (entry.status < 400 && !hasLongText(value)) {
    entry.unserialized = value
    return null
  }
  const text = JSON.stringify(value)
  entry.response = keptBody(text, JSON_TYPE)
  return isStatus ? null : text
}

function takeResponse(entry: OpenEntry, response: Response): void {
  entry.status = response.status
  entry.responseType = response.headers.get('content-type') ?? ''
  if (!entry.responseType.startsWith('application/json')) return
  const reading = response.clone().text()
  const text: unknown = Bun.peek(reading)
  if (typeof text === 'string') entry.response = keptBody(text, entry.responseType)
  else reading.catch(() => {})
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/**
 * Reports whether a value has long texts, as the output of a command or a file has. Nested objects are not examined.
 */
function hasLongText(response: Readonly<Record<string, unknown>>): boolean {
  for (const name in response) {
    const value = response[name]
    if (typeof value === 'string' && value.length > LONG_TEXT) return true
  }
  return false
}
