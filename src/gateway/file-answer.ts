import { fields } from './http1/head.ts'
import type { RequestHead } from './http1/request-head.ts'
import type { ServeFiles } from './upstream.ts'

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/** A body up to this many bytes is read whole and goes out with its head. */
const WHOLE_LIMIT = 1024 * 1024

/** The client that a file is answered to. */
export interface FileTarget {
  /** The connection stays open behind the answer. */
  readonly keepAlive: boolean
  /** It knows no chunks: a body of unknown length ends with the connection. */
  readonly unchunks: boolean
  /** @returns whether it has taken all; else no more comes before `drained` */
  write(bytes: Uint8Array): boolean
  /** The answer is over. @param keepAlive whether another may follow it */
  end(keepAlive: boolean): void
  /** The answer cannot be brought to its end, or to its beginning. */
  fail(error: unknown, begun: boolean): void
}

/**
 * One answer of what serves files, written to a client as HTTP/1.1. Its body is read as the client
 * takes it.
 */
export class FileAnswer {
  readonly #target: FileTarget
  #reader: Reader | null = null
  #cancelled = false
  #drained: (() => void) | null = null

  constructor(target: FileTarget) {
    this.#target = target
  }

  /** The client takes more. */
  drained(): void {
    this.#drained?.()
    this.#drained = null
  }

  /** The client has gone. */
  cancel(): void {
    this.#cancelled = true
    this.#reader?.cancel().catch(() => {})
    this.drained()
  }

  /** Asks for the answer and writes it. Failures are told to the target. */
  async run(request: Request, serve: ServeFiles): Promise<void> {
    let begun = false
    try {
      const response = await serve(request)
      if (this.#cancelled) {
        await response.body?.cancel()
        return
      }
      const { status, headers } = response
      const bodiless = request.method === 'HEAD' || status === 204 || status === 304
      const length = headers.get('content-length')
      const small = length !== null && Number(length) <= WHOLE_LIMIT
      if (bodiless || small || response.body === null) {
        const body = bodiless ? null : new Uint8Array(await response.arrayBuffer())
        if (this.#cancelled) return
        const told = body !== null && length === null ? `content-length: ${body.length}\r\n` : ''
        begun = true
        this.#target.write(message(response, told + closing(this.#target.keepAlive), body))
        this.#target.end(this.#target.keepAlive)
        return
      }
      const chunked = length === null && !this.#target.unchunks
      const keepAlive = this.#target.keepAlive && (length !== null || chunked)
      const told = (chunked ? 'transfer-encoding: chunked\r\n' : '') + closing(keepAlive)
      const reader = response.body.getReader()
      this.#reader = reader
      begun = true
      await this.#write(message(response, told, null))
      await this.#copy(reader, chunked)
      if (!this.#cancelled) this.#target.end(keepAlive)
    } catch (error) {
      if (!this.#cancelled) this.#target.fail(error, begun)
    }
  }

  async #copy(reader: Reader, chunked: boolean): Promise<void> {
    for (;;) {
      const { value, done } = await reader.read()
      if (done || this.#cancelled) break
      if (value.length === 0) continue
      if (chunked) {
        const framed = [Buffer.from(`${value.length.toString(16)}\r\n`), value, CRLF]
        await this.#write(Buffer.concat(framed))
      } else await this.#write(value)
    }
    if (chunked && !this.#cancelled) await this.#write(LAST_CHUNK)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#target.write(bytes) || this.#cancelled) return
    await new Promise<void>((resolve) => {
      this.#drained = resolve
    })
  }
}

const CRLF = Buffer.from('\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

const closing = (keepAlive: boolean): string => (keepAlive ? '' : 'connection: close\r\n')

/** The bytes of an answer's head, and of its body where there is one. */
function message({ status, statusText, headers }: Response, told: string, body: Uint8Array | null): Buffer {
  let head = `HTTP/1.1 ${status} ${statusText || REASONS[status] || ''}\r\n`
  headers.forEach((value, name) => {
    head += `${name}: ${value}\r\n`
  })
  head += `${told}\r\n`
  const bytes = Buffer.allocUnsafe(head.length + (body?.length ?? 0))
  bytes.write(head, 'latin1')
  if (body !== null) bytes.set(body, head.length)
  return bytes
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  206: 'Partial Content',
  301: 'Moved Permanently',
  304: 'Not Modified',
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  412: 'Precondition Failed',
  416: 'Range Not Satisfiable',
}

/** A request as `ServeFiles` takes it, without its body; null where its target is no URL. */
export function requestOf(bytes: Buffer, head: RequestHead): Request | null {
  fields.ensure(bytes, head.fieldsStart, head.end)
  const path = bytes.toString('latin1', head.targetStart, head.targetEnd)
  const headers: [string, string][] = []
  for (let index = 0; index < fields.count; index += 1) {
    headers.push([fields.name(bytes, index), fields.value(bytes, index)])
  }
  try {
    return new Request(`http://${head.host ?? 'localhost'}${path}`, { method: head.method, headers })
  } catch {
    return null
  }
}
