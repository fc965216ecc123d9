import type { ExecResult } from './server.js'

/** The most bytes of each stream that a result keeps, as the API does. */
const KEPT_BYTES = 10 * 1024 * 1024

/** The data of an event `stdout` or `stderr`. */
export interface OutputEvent {
  readonly data: string
  readonly encoding?: 'base64'
}

/** The data of an event `exit`. */
interface ExitEvent {
  readonly exitCode: number
  readonly timedOut: boolean
  readonly truncated: boolean
  readonly refused?: ExecResult['refused']
}

/** Collects the output of a command, and passes it on as it arrives. */
export class OutputCollector {
  readonly #callbacks
  readonly #streams = { stdout: new KeptBytes(), stderr: new KeptBytes() }

  constructor(callbacks: {
    onStdout?: ((text: string) => void) | undefined
    onStderr?: ((text: string) => void) | undefined
  }) {
    this.#callbacks = callbacks
  }

  /** Takes the next piece of a stream. */
  take(stream: 'stdout' | 'stderr', event: OutputEvent): void {
    this.#streams[stream].add(bytesOf(event))
    const callback = stream === 'stdout' ? this.#callbacks.onStdout : this.#callbacks.onStderr
    callback?.(textOf(event))
  }

  /** Returns all that was printed, and how the command ended. */
  result({ exitCode, timedOut, truncated, refused }: ExitEvent): ExecResult {
    const { stdout, stderr } = this.#streams
    return {
      stdout: stdout.text,
      stderr: stderr.text,
      stdoutBytes: stdout.bytes,
      stderrBytes: stderr.bytes,
      exitCode,
      timedOut,
      truncated: truncated || stdout.isFull || stderr.isFull,
      refused: refused ?? [],
    }
  }
}

/** The text of an event, with U+FFFD for bytes that are not UTF-8. */
export const textOf = (event: OutputEvent): string =>
  event.encoding === 'base64' ? new TextDecoder().decode(bytesOf(event)) : event.data

/** The bytes of an event. */
export const bytesOf = ({ data, encoding }: OutputEvent): Uint8Array => Buffer.from(data, encoding ?? 'utf8')

/** The beginning of a stream. */
class KeptBytes {
  readonly #chunks: Uint8Array[] = []
  #size = 0
  isFull = false

  add(chunk: Uint8Array): void {
    const kept = chunk.subarray(0, KEPT_BYTES - this.#size)
    this.isFull ||= kept.length < chunk.length
    this.#size += kept.length
    this.#chunks.push(kept)
  }

  get bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#chunks))
  }

  get text(): string {
    return new TextDecoder().decode(Buffer.concat(this.#chunks))
  }
}
