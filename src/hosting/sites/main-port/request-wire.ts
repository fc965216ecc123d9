import { badAnswer, type OwnAnswer, ownContent, unavailable } from '../answers.ts'
import { ClientConnection } from '../client.ts'
import { fields, findHeadEnd } from '../http1/head.ts'
import { ResponseHead } from '../http1/response-head.ts'
import type { Wire } from '../outlet.ts'
import type { Traffic } from '../traffic.ts'

/** Bytes of an answer that wait for the main port's client before the app has to. */
const HIGH_WATER = 256 * 1024

const CRLF = Buffer.from('\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Fields that the way through the main port makes anew, or that mean its connection alone. */
const OWN = new Set(['connection', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade'])

const CLOSED = 'The connection to the project was closed.'

/** Has a request of the main port answered by a site, as if it came by the site's own port. */
export function answerRequest(
  request: Request,
  address: string,
  traffic: Traffic,
  /** Lines for the request's head beside its own, each with its CRLF. */
  more = 'Connection: close\r\n',
): Promise<Response> {
  const wire = new RequestWire(request, address, traffic)
  wire.begin(more)
  return wire.response
}

/** A request of the main port in the place of a socket: what the site writes becomes its answer. */
class RequestWire implements Wire {
  readonly remoteAddress: string
  readonly response: Promise<Response>
  readonly #request: Request
  readonly #client: ClientConnection
  readonly #head = new ResponseHead()
  #settle: (response: Response) => void = () => {}
  /** Of the answer, as long as its head is not whole. */
  #partial: Buffer | null = Buffer.alloc(0)
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #paused = false
  #resumed: (() => void) | null = null
  #over = false

  constructor(request: Request, address: string, traffic: Traffic) {
    this.remoteAddress = address
    this.#request = request
    this.response = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#client = new ClientConnection(this, traffic, true)
  }

  begin(more: string): void {
    const { method, url, headers, signal, body } = this.#request
    signal.addEventListener('abort', () => this.#gone(), { once: true })
    const chunked = body !== null && headers.get('content-length') === null
    let lines = ''
    headers.forEach((value, name) => {
      if (!OWN.has(name)) lines += `${name}: ${value}\r\n`
    })
    if (chunked) lines += 'Transfer-Encoding: chunked\r\n'
    const target = url.slice(url.indexOf('/', 'http://'.length))
    this.#client.receive(
      Buffer.concat([
        // Letters beyond ASCII come decoded in a URL, and encoded as bytes in headers.
        Buffer.from(`${method} ${target} HTTP/1.1\r\n`),
        Buffer.from(`${lines}${more}\r\n`, 'latin1'),
      ]),
    )
    if (body !== null) void this.#pump(body, chunked)
  }

  write(bytes: Uint8Array, offset: number, length: number): number {
    if (this.#over) return -1
    const chunk = bytes.slice(offset, offset + length)
    if (this.#partial !== null) {
      this.#takeHead(Buffer.concat([this.#partial, chunk]))
      return length
    }
    if ((this.#controller?.desiredSize ?? 0) <= 0) return 0
    this.#controller?.enqueue(chunk)
    return length
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#resumed?.()
    this.#resumed = null
  }

  shutdown(): void {
    this.end()
  }

  end(): void {
    if (this.#over) return
    this.#finish()
    this.#controller?.close()
    this.#settle(ownResponse(unavailable(CLOSED)))
  }

  terminate(): void {
    if (this.#over) return
    this.#finish()
    this.#controller?.error(new Error('the answer of the site was cut off'))
    this.#settle(ownResponse(unavailable(CLOSED)))
  }

  #takeHead(bytes: Buffer): void {
    const end = findHeadEnd(bytes, 0)
    if (end === -1) {
      this.#partial = bytes
      return
    }
    this.#partial = null
    const fault = this.#head.parse(bytes, 0, end, this.#request.method)
    if (fault !== null || this.#head.status < 200) {
      this.#settle(ownResponse(badAnswer(fault ?? 'it switches protocols')))
      this.#gone()
      return
    }
    const { status, framing, length } = this.#head
    const headers = new Headers()
    for (let index = 0; index < fields.count; index += 1) {
      const name = fields.name(bytes, index)
      if (!OWN.has(name)) headers.append(name, fields.value(bytes, index))
    }
    const content = new Uint8Array(bytes.subarray(end))
    if (framing === 'none' || (framing === 'length' && content.length === length)) {
      const body = framing === 'none' ? null : content
      this.#settle(new Response(body, { status, headers }))
    } else this.#settle(new Response(this.#stream(content), { status, headers }))
  }

  #stream(first: Uint8Array): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          if (first.length > 0) controller.enqueue(first)
        },
        // What is written from within this would be asked for again from within it.
        pull: () => queueMicrotask(() => this.#client.drain()),
        cancel: () => this.#gone(),
      },
      { highWaterMark: HIGH_WATER, size: (chunk) => chunk?.byteLength ?? 0 },
    )
  }

  async #pump(body: ReadableStream<Uint8Array>, chunked: boolean): Promise<void> {
    try {
      for await (const chunk of body) {
        await this.#room()
        if (this.#over) return
        const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
        if (!chunked) this.#client.receive(bytes)
        else if (bytes.length > 0) {
          this.#client.receive(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF]))
        }
      }
      if (chunked && !this.#over) this.#client.receive(LAST_CHUNK)
    } catch {
      this.#gone()
    }
  }

  async #room(): Promise<void> {
    if (!this.#paused) return
    await new Promise<void>((resolve) => {
      this.#resumed = resolve
    })
  }

  /** The client of the main port has gone. */
  #gone(): void {
    if (this.#over) return
    this.#finish()
    this.#settle(ownResponse(unavailable(CLOSED)))
  }

  #finish(): void {
    this.#over = true
    this.resume()
    // As a socket tells of its end: not from within the call that ends it.
    queueMicrotask(() => this.#client.closed())
  }
}

function ownResponse(answer: OwnAnswer): Response {
  const { type, content } = ownContent(answer, false)
  return new Response(content, { status: answer.status, headers: { 'content-type': type } })
}
