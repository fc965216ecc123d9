import type { ExecExit, RefusedDestination } from '../../compute/sandbox.ts'
import type { BerthError } from '../../errors.ts'
import type { SendBytes } from '../../http/byte-stream.ts'
import type { SendEvent } from '../../http/sse.ts'
import { unfinished, utf8Text } from '../../runtime/decode.ts'
import { encodeFrame, FRAME_KINDS } from './frames.ts'

/** Most bytes of each stream in a result. @bound program */
export const OUTPUT_LIMIT = 10 * 1024 * 1024

/** One of a command's output streams. */
export type Stream = 'stdout' | 'stderr'

/** How a command ended, and what its server was refused meanwhile. */
export type ExecEnd = ExecExit & { refused?: RefusedDestination[] }

/** Sends a command's output to a client. */
export interface ExecOutput {
  /** Sends bytes. Resolves when more may be written. */
  write(stream: Stream, bytes: Uint8Array): Promise<void> | void
  /** Sends how the command ended, last. */
  end(end: ExecEnd): Promise<void>
  /** Sends why the command could not be run, last. */
  fail(error: BerthError): Promise<void>
}

/** Sends frames, as `frames.ts` has them. */
export class FrameOutput implements ExecOutput {
  readonly #send: SendBytes

  constructor(send: SendBytes) {
    this.#send = send
  }

  write(stream: Stream, bytes: Uint8Array): Promise<void> | void {
    return this.#send(encodeFrame(FRAME_KINDS[stream], bytes))
  }

  async end(end: ExecEnd): Promise<void> {
    await this.#send(encodeFrame(FRAME_KINDS.exit, Buffer.from(JSON.stringify(end))))
  }

  async fail(error: BerthError): Promise<void> {
    await this.#send(encodeFrame(FRAME_KINDS.error, Buffer.from(JSON.stringify(error.toBody()))))
  }
}

/** Sends standard output alone, unchanged. A response to a command that failed breaks off. */
export class PlainOutput implements ExecOutput {
  readonly #send: SendBytes

  constructor(send: SendBytes) {
    this.#send = send
  }

  write(stream: Stream, bytes: Uint8Array): Promise<void> | void {
    if (stream === 'stdout') return this.#send(bytes)
  }

  async end({ exitCode }: ExecEnd): Promise<void> {
    // Without a reason, which would be printed.
    if (exitCode !== 0) return Promise.reject()
  }

  async fail(): Promise<void> {
    return Promise.reject()
  }
}

/**
 * Converts a command's bytes to `stdout` and `stderr` events. Text is sent as `{"data": "…"}`; a character that a
 * chunk cuts is held back until it is complete. Bytes that are not UTF-8 are sent as `{"data": "…", "encoding":
 * "base64"}`.
 */
export class EventOutput implements ExecOutput {
  readonly #send: SendEvent
  readonly #rest: Record<Stream, Uint8Array> = { stdout: new Uint8Array(0), stderr: new Uint8Array(0) }

  constructor(send: SendEvent) {
    this.#send = send
  }

  /** Sends the complete characters of a chunk. Resolves when more may be written. */
  write(stream: Stream, chunk: Uint8Array): Promise<void> | void {
    const bytes = this.#rest[stream].length ? Buffer.concat([this.#rest[stream], chunk]) : chunk
    const cut = bytes.length - unfinished(bytes)
    this.#rest[stream] = bytes.slice(cut)
    if (cut > 0) return this.#event(stream, bytes.subarray(0, cut))
  }

  /** Sends the bytes that were held back, and `exit`. */
  async end(end: ExecEnd): Promise<void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#rest[stream].length) await this.#event(stream, this.#rest[stream])
    }
    await this.#send('exit', end)
  }

  /** Sends `error`. */
  async fail(error: BerthError): Promise<void> {
    await this.#send('error', error.toBody())
  }

  #event(stream: Stream, bytes: Uint8Array): Promise<void> | void {
    const data = utf8Text(bytes)
    if (data !== null) return this.#send(stream, { data })
    return this.#send(stream, { data: Buffer.from(bytes).toString('base64'), encoding: 'base64' })
  }
}
