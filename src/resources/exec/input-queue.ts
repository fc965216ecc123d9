import { BerthError, badRequest } from '../../errors.ts'
import type { ExecRequest, ExecutionInput } from './model.ts'

/** Most bytes that wait until the command reads them. @bound client */
const MAX_WAITING = 16 * 1024 * 1024

/** The standard input of a command, which is written while it runs. */
export class InputQueue {
  /** What the command reads. */
  readonly stream: ReadableStream<Uint8Array>
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #isClosed = false

  constructor() {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#isClosed = true
        },
      },
      { highWaterMark: MAX_WAITING, size: (chunk) => chunk?.byteLength ?? 0 },
    )
  }

  /** Whether nothing can be written any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * Adds bytes, which must not change.
   *
   * @throws BerthError 403 if the command has not read too much of what was written before
   */
  write(data: Uint8Array): void {
    if (data.length === 0) return
    if ((this.#controller?.desiredSize ?? 0) < data.length) {
      throw new BerthError(
        'plan_limit',
        'More was written than the command reads. Wait until it reads, or end it.',
      )
    }
    this.#controller?.enqueue(data)
  }

  /** Ends the input after what was written. */
  end(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#controller?.close()
  }
}

/** Returns the standard input of a command, and how it is written to if it stays open. */
export function inputOf({ stdin, openStdin }: Pick<ExecRequest, 'stdin' | 'openStdin'>) {
  if (openStdin !== true) return { stdin: {}, input: null }
  const input = new InputQueue()
  if (typeof stdin === 'string') input.write(new TextEncoder().encode(stdin))
  return { stdin: { stdin: input.stream }, input }
}

/** Returns the bytes to write. @throws BerthError 400 */
export function bytesOf({ text, base64, end }: ExecutionInput): Uint8Array {
  if (text !== undefined && base64 !== undefined)
    throw badRequest('"text" and "base64" in the body exclude each other. Leave one out.')
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  if (text === undefined && end !== true)
    throw badRequest('The body has nothing to write: give "text", "base64" or "end": true.')
  return new TextEncoder().encode(text ?? '')
}
