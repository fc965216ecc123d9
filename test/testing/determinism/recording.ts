import type { TestBerth } from '../../support/berth.ts'
import { readEvents, type ServerEvent } from '../../support/events.ts'

/** One request and all of its answer but what HTTP itself dates. */
export interface Recorded {
  method: string
  /** With its query. */
  path: string
  status: number
  headers: Record<string, string>
  body: string
}

/** What the control API measures against the machine, or what is signed at the machine's time. */
const MEASURED = /"(?:offset_ms|ms|webhook-timestamp|webhook-signature)":(?:-?[\d.]+|"[^"]*")/g

/** Makes requests one after the other and keeps every answer. */
export class Recorder {
  readonly all: Recorded[] = []
  readonly #berth: TestBerth

  constructor(berth: TestBerth) {
    this.#berth = berth
  }

  /** A request of the API with the first key. Resolves to the answer's JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  async call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
    const response = await this.#send(method, path, body, headers ?? {})
    const text = await response.text()
    this.#keep(method, path, response, text)
    return parsed(text)
  }

  /** The same for the control API. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  control(method: string, path: string, body?: unknown): Promise<any> {
    const authorization = `Bearer ${this.#berth.info.admin_token}`
    return this.call(method, `/_berth${path}`, body, { authorization })
  }

  /**
   * Follows an event stream to its end, or until an event is there that is waited for. How what is printed comes in
   * pieces is up to the machine.
   */
  async follow(path: string, isMeant: (event: ServerEvent) => boolean = () => false): Promise<ServerEvent[]> {
    const response = await this.#send('GET', path, undefined, { accept: 'text/event-stream' })
    const events: ServerEvent[] = []
    for await (const event of readEvents(response)) {
      if (event.event !== 'output') events.push(event)
      if (isMeant(event)) break
    }
    this.#keep('GET', path, response, events.map((event) => JSON.stringify(event)).join('\n'))
    return events
  }

  /**
   * The log of a project whose app is up, once the app has printed a line that begins so. Between which of its lines
   * those of berth stand is up to the machine: they are kept by where they come from.
   */
  async appLog(path: string, printed: string): Promise<void> {
    const following = await this.#send('GET', path, undefined, { accept: 'text/event-stream' })
    for await (const { data } of readEvents(following)) if (data.text?.startsWith(printed)) break
    const response = await this.#send('GET', path, undefined, {})
    const { logs } = (await response.json()) as { logs: { seq: number; source: string; stream?: string }[] }
    const sorted = logs
      .map(({ seq: _, ...line }) => line)
      .sort((a, b) => `${a.source} ${a.stream}`.localeCompare(`${b.source} ${b.stream}`))
    this.#keep('GET', path, response, sorted.map((line) => JSON.stringify(line)).join('\n'))
  }

  #send(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Response> {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    return this.#berth.fetch(path, {
      method,
      headers: { ...json, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  #keep(method: string, path: string, response: Response, body: string): void {
    const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'date').sort())
    const isControl = path.startsWith('/_berth')
    if (isControl) {
      // A client that waits asks the control API as often as it takes; what it measures may be longer or shorter.
      delete headers['x-request-id']
      delete headers['content-length']
    }
    const steady = isControl ? body.replaceAll(MEASURED, '') : body
    this.all.push({ method, path, status: response.status, headers, body: steady })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
