import type { HeadMemory } from './http1/head-memory.ts'
import type { HttpDate } from './http1/http-date.ts'
import type { RequestHead } from './http1/request-head.ts'
import type { FileRequest, FileResponse, ServeFiles } from './upstream.ts'

/** The client's connection that a file is sent to. */
interface FileTarget {
  readonly memory: HeadMemory
  readonly date: HttpDate
  /** Whether the connection stays open after the response. */
  readonly keepAlive: boolean
  /** Whether the client knows no chunks. A body of unknown length then ends with the connection. */
  readonly unchunks: boolean
  /** Writes bytes, see `BufferedWriter.write`. After false, the caller waits for `drained`. */
  write(bytes: Uint8Array, from: number, to: number, mustCopy: boolean): boolean
  /**
   * Ends the response.
   *
   * @param keepAlive whether another may follow
   */
  end(keepAlive: boolean): void
  /**
   * Reports that the response could not be completed.
   *
   * @param begun whether a part of it was sent
   */
  fail(error: unknown, begun: boolean): void
}

const CRLF = Buffer.from('\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  206: 'Partial Content',
  301: 'Moved Permanently',
  302: 'Found',
  304: 'Not Modified',
  404: 'Not Found',
  405: 'Method Not Allowed',
  412: 'Precondition Failed',
  416: 'Range Not Satisfiable',
  503: 'Service Unavailable',
}

/** Writes one file response to a connection as HTTP/1.1. Reads a stream only as fast as the client accepts it. */
export class FileResponder {
  readonly #target: FileTarget
  #cancel: (() => void) | null = null
  #cancelled = false
  #drained: (() => void) | null = null

  constructor(target: FileTarget) {
    this.#target = target
  }

  /** Continues, because the client accepts more. */
  drained(): void {
    this.#drained?.()
    this.#drained = null
  }

  /** Stops, because the client has disconnected. */
  cancel(): void {
    this.#cancelled = true
    this.#cancel?.()
    this.drained()
  }

  /** Requests the response and writes it. Failures go to `FileTarget.fail`. */
  async run(request: FileRequest, serve: ServeFiles): Promise<void> {
    let begun = false
    try {
      const response = await serve(request)
      const { status, body } = response
      const bodiless = request.method === 'HEAD' || status === 204 || status === 304
      if (this.#cancelled || (bodiless && body instanceof ReadableStream)) {
        if (body instanceof ReadableStream) await body.cancel()
        if (this.#cancelled) return
      }
      const target = this.#target
      if (body instanceof ReadableStream && !bodiless) {
        const sized = response.headers['content-length'] !== undefined
        const chunked = !sized && !target.unchunks
        const keepAlive = target.keepAlive && (sized || chunked)
        begun = true
        this.#writeHead(response, chunked ? 'transfer-encoding: chunked\r\n' : '', keepAlive, null)
        await this.#copy(body, chunked)
        if (!this.#cancelled) target.end(keepAlive)
      } else {
        const bytes = bodiless ? null : (body as Uint8Array | null)
        const sized = bodiless || response.headers['content-length'] !== undefined
        begun = true
        this.#writeHead(
          response,
          sized ? '' : `content-length: ${bytes?.length ?? 0}\r\n`,
          target.keepAlive,
          bytes,
        )
        target.end(target.keepAlive)
      }
    } catch (error) {
      if (!this.#cancelled) this.#target.fail(error, begun)
    }
  }

  /** Writes the head and a body that is in memory, in one write if both fit into the scratch buffer. */
  #writeHead(response: FileResponse, framing: string, keepAlive: boolean, body: Uint8Array | null): void {
    const { status, headers } = response
    const { scratch } = this.#target.memory
    let head = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\ndate: ${this.#target.date}\r\n`
    for (const name in headers) head += `${name}: ${headers[name]}\r\n`
    head += framing
    if (!keepAlive) head += 'connection: close\r\n'
    head += '\r\n'
    if (head.length > scratch.length) throw new Error('the header of a response is too large')
    const length = scratch.write(head, 'latin1')
    if (body === null) this.#target.write(scratch, 0, length, true)
    else if (length + body.length <= scratch.length) {
      scratch.set(body, length)
      this.#target.write(scratch, 0, length + body.length, true)
    } else {
      this.#target.write(scratch, 0, length, true)
      this.#target.write(body, 0, body.length, false)
    }
  }

  async #copy(body: ReadableStream<Uint8Array>, chunked: boolean): Promise<void> {
    const reader = body.getReader()
    this.#cancel = () => void reader.cancel().catch(() => {})
    for (;;) {
      const { value, done } = await reader.read()
      if (done || this.#cancelled) break
      if (value.length === 0) continue
      const framed = chunked
        ? Buffer.concat([Buffer.from(`${value.length.toString(16)}\r\n`), value, CRLF])
        : value
      await this.#write(framed)
    }
    if (chunked && !this.#cancelled) await this.#write(LAST_CHUNK)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#target.write(bytes, 0, bytes.length, false) || this.#cancelled) return
    await new Promise<void>((resolve) => {
      this.#drained = resolve
    })
  }
}

/** A parsed request of a site's own port. */
export class ParsedRequest implements FileRequest {
  readonly method: string
  readonly target: string

  /**
   * @param bytes from which `head` was parsed
   */
  constructor(
    private readonly bytes: Buffer,
    private readonly head: RequestHead,
  ) {
    this.method = head.method
    this.target = bytes.toString('latin1', head.targetStart, head.targetEnd)
  }

  header(name: string): string | null {
    const { fields } = this.head
    fields.ensure(this.bytes, this.head.fieldsStart, this.head.end)
    return fields.find(this.bytes, name)
  }
}
