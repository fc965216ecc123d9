import { Elysia } from 'elysia'
import type { Callers } from '../../http/authentication.ts'
import type { Caller } from '../../http/caller.ts'
import { namedClient } from '../../http/own-client.ts'
import { wantsSocket } from '../../http/web-socket.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { type AppliedFault, headerFields, type JournalEntry, JSON_TYPE, keptBody } from './entry.ts'
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
interface CaptureOptions {
  journal: RequestJournal
  callers: Callers
  clock: Clock
  ids: Ids
}

type Handle = (request: Request) => Response | Promise<Response>

/**
 * Captures requests and responses for the journal. Every request passes here, so it only takes references; readers do
 * the rest. Streams and files pass unchanged.
 */
export class Capture {
  readonly #options: CaptureOptions
  readonly #applied = new WeakMap<Request, readonly AppliedFault[]>()

  constructor(options: CaptureOptions) {
    this.#options = options
  }

  /** Adds the faults that apply to a request. Call it before the request begins. */
  readonly applied = (request: Request, faults: readonly AppliedFault[]): void => {
    this.#applied.set(request, faults)
  }

  /** Begins the entry of a request. */
  readonly begin = (set: ResponseSettings, request: Request): void => {
    set.entry = this.#opened(request)
  }

  /** Adds the part of a request's body that was read: its bytes, or a form's fields as JSON. */
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
        // The page's WebSockets can have no header of their own. They have a session.
        if (entry.client === null && callers.hasIdentified(request) && wantsSocket(request))
          entry.client = 'dashboard'
        entry.responseHeaders = set.headers as Record<string, unknown>
        entry.aborted = entry.ms > SOON_MS && request.signal.aborted
        if (typeof set.status === 'number') entry.status = set.status
        const text = takeValue(entry, responseValue)
        entry.caller = callerOf(request, entry.status, callers)
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
    const { journal, callers, ids } = this.#options
    return async (request) => {
      const entry = this.#opened(request)
      let seen = false
      const response = await before(request, (passed) => {
        seen = true
        return app(passed)
      })
      if (seen) return response
      entry.faults = this.#applied.get(request) ?? []
      takeValue(entry, response)
      if (entry.response === null && isText(entry.responseType)) takeText(entry, response)
      entry.responseHeaders = response.headers
      // A cut connection and the response of a fault have no id of the API.
      entry.id = response.headers.get('x-request-id') ?? ids.next('req')
      entry.ms = performance.now() - entry.began
      entry.caller = callerOf(request, entry.status, callers)
      entry.aborted = request.signal.aborted
      journal.add(entry)
      return response
    }
  }

  #opened(request: Request): OpenEntry {
    const { method, url, headers } = request
    return {
      id: '',
      at: this.#options.clock.now(),
      began: performance.now(),
      ms: 0,
      method,
      client: namedClient(headers),
      url,
      status: 200,
      caller: undefined,
      request: null,
      response: null,
      requestHeaders: headers,
      responseHeaders: [],
      faults: this.#applied.get(request) ?? [],
      unserialized: null,
      responseType: '',
      aborted: false,
    }
  }
}

/** Returns the sender of a request, also of one that was refused before its credential was checked. */
const callerOf = (request: Request, status: number, callers: Callers): Caller | undefined =>
  callers.of(request) ?? (status >= 400 && status !== 401 ? callers.find(request) : undefined)

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
  // Elysia adds those of its settings, which `responseHeaders` has.
  entry.responseHeaders = [...headerFields(entry.responseHeaders), ...headerFields(response.headers)]
  entry.responseType = response.headers.get('content-type') ?? ''
  if (entry.responseType.startsWith('application/json')) takeText(entry, response)
}

/** Reports whether a response of this type is a text that is complete, unlike an event stream. */
const isText = (type: string): boolean => type.startsWith('text/') && !type.startsWith('text/event-stream')

function takeText(entry: OpenEntry, response: Response): void {
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
