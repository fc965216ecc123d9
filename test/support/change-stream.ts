import { EventSourceParserStream } from 'eventsource-parser/stream'
import { describeAll } from '../../src/instance/describe.ts'
import type { TestBerth } from './berth.ts'
import { schemaChecker } from './openapi-rules.ts'

/** A message of a stream of changes, as it came. */
export interface SentChange {
  type: string
  id: string
  server_id?: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  value: any
}

/** The shapes of the messages of streams, by the beginning of their paths. */
const SHAPES = [
  ['/changes', 'Change'],
  ['/_berth/changes', 'ControlChange'],
] as const

/** A reader of a stream of changes, under test. */
export class TestChanges implements Disposable {
  /** All messages so far, the first one too. */
  readonly messages: SentChange[] = []
  readonly #waiting = new Set<() => void>()
  readonly #closed = Promise.withResolvers<{ code: number; reason: string }>()
  #close = (): void => {}

  /** All messages that the tests of this process have been sent, by the shape that documents have of them. */
  static readonly #sent: Record<'Change' | 'ControlChange', SentChange[]> = { Change: [], ControlChange: [] }
  readonly #path: string

  private constructor(path: string) {
    this.#path = path
  }

  /** Returns what of all messages so far is not as the documents say, each type once. */
  static async undocumented(shape: 'Change' | 'ControlChange'): Promise<string[]> {
    const { components } = await describeAll()
    const checker = schemaChecker()
    const fits = checker.compile({ components, $ref: `#/components/schemas/${shape}` })
    const wrong = new Map<string, string>()
    for (const message of TestChanges.#sent[shape])
      if (!fits(message as unknown))
        wrong.set(message.type, `${JSON.stringify(message)}: ${checker.errorsText(fits.errors)}`)
    return [...wrong.values()]
  }

  /** Opens a WebSocket; resolves when the stream is ready. */
  static async socket(
    berth: TestBerth,
    headers: Record<string, string> = { authorization: `Bearer ${berth.info.api_key}` },
    path = '/changes',
  ): Promise<TestChanges> {
    const url = `${berth.info.base_url.replace('http', 'ws')}${path}`
    // A handshake that comes right after the ready line gets 503, and is to be sent again.
    const changes = await TestChanges.#opened(url, headers, path).catch(() =>
      TestChanges.#opened(url, headers, path),
    )
    await changes.next('ready')
    return changes
  }

  static #opened(url: string, headers: Record<string, string>, path: string): Promise<TestChanges> {
    const changes = new TestChanges(path)
    const socket = new WebSocket(url, { headers } as never)
    const { promise, resolve, reject } = Promise.withResolvers<TestChanges>()
    socket.onopen = () => resolve(changes)
    socket.onmessage = ({ data }) => changes.#add(JSON.parse(String(data)))
    socket.onclose = ({ code, reason }) => {
      reject(new Error(`closed: ${code} ${reason}`))
      changes.#end(code, reason)
    }
    changes.#close = () => socket.close()
    return promise
  }

  /** Opens an event stream; resolves when it is ready. */
  static async events(
    berth: TestBerth,
    headers: Record<string, string> = {},
    path = '/changes',
  ): Promise<TestChanges> {
    const changes = new TestChanges(path)
    const abort = new AbortController()
    const accept = { accept: 'text/event-stream' }
    const response = await berth.fetch(path, { headers: { ...accept, ...headers }, signal: abort.signal })
    if (response.status !== 200 || !response.body) throw new Error(`no stream: ${await response.text()}`)
    changes.#close = () => abort.abort()
    void changes.#read(response.body)
    await changes.next('ready')
    return changes
  }

  /** Resolves when the stream has ended: with the code of a socket, 0 for an event stream. */
  get closed(): Promise<{ code: number; reason: string }> {
    return this.#closed.promise
  }

  /** Returns the first message of this type that fits; waits for it if need be. */
  async next(
    type: string,
    fits: (message: SentChange) => boolean = () => true,
    ms = 20_000,
  ): Promise<SentChange> {
    const ends = performance.now() + ms
    for (;;) {
      const found = this.messages.find((message) => message.type === type && fits(message))
      if (found) return found
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      const timer = setTimeout(resolve, Math.max(0, ends - performance.now()))
      const closed = await Promise.race([promise, this.closed])
      clearTimeout(timer)
      this.#waiting.delete(resolve)
      if (closed) throw new Error(`closed before ${type}: ${closed.code} ${closed.reason}`)
      if (performance.now() >= ends)
        throw new Error(`no ${type}; there is ${JSON.stringify(this.messages.slice(-5)).slice(0, 2_000)}`)
    }
  }

  /** The last message about an object. */
  last(type: string, id: string): SentChange | undefined {
    return this.messages.findLast((message) => message.type === type && message.id === id)
  }

  /** Forgets the messages so far. */
  clear(): void {
    this.messages.length = 0
  }

  close(): void {
    this.#close()
  }

  [Symbol.dispose](): void {
    this.#close()
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const events = body
      .pipeThrough(new TextDecoderStream() as never)
      .pipeThrough(new EventSourceParserStream())
    try {
      for await (const { event, data } of events as unknown as AsyncIterable<{
        event: string
        data: string
      }>) {
        const message = JSON.parse(data)
        this.#add(event === 'error' ? { type: 'error', id: '', value: message } : message)
        if (event !== 'error' && event !== message.type) throw new Error(`${event} has ${data}`)
      }
    } catch {
      // Aborted.
    }
    this.#end(0, '')
  }

  #add(message: SentChange): void {
    this.messages.push(message)
    const shape = SHAPES.find(([path]) => this.#path.startsWith(path))?.[1]
    // The end of a stream of events by an error is no change.
    if (shape && message.type !== 'error') TestChanges.#sent[shape].push(message)
    for (const wake of this.#waiting) wake()
  }

  #end(code: number, reason: string): void {
    this.#closed.resolve({ code, reason })
  }
}
