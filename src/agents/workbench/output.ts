import type { MaskStream, Masks } from '../../runtime/masks.ts'

/** Most characters kept of the beginning, and of the end, of each stream. */
const MAX_KEPT = 32 * 1024

type Stream = 'stdout' | 'stderr'

/** Collects a command's output and passes it on while it is printed. Masks secrets in both. */
export class CommandOutput {
  readonly #onText: (stream: Stream, text: string) => void
  readonly #streams: Record<Stream, { decoder: TextDecoder; mask: MaskStream; text: BoundedText }>

  constructor(masks: Masks, show: (stream: Stream, text: string) => void) {
    this.#onText = show
    const stream = () => ({ decoder: new TextDecoder(), mask: masks.stream(), text: new BoundedText() })
    this.#streams = { stdout: stream(), stderr: stream() }
  }

  /** Adds the next bytes. */
  write(stream: Stream, data: Uint8Array): void {
    const { decoder, mask } = this.#streams[stream]
    this.#add(stream, mask.push(decoder.decode(data, { stream: true })))
  }

  /** Returns the whole output, after its end. */
  end(): Record<Stream, string> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const { decoder, mask } = this.#streams[stream]
      this.#add(stream, mask.push(decoder.decode()))
      this.#add(stream, mask.flush())
    }
    return { stdout: this.#streams.stdout.text.toString(), stderr: this.#streams.stderr.text.toString() }
  }

  /** Reports whether some of the output was dropped. */
  get truncated(): boolean {
    return this.#streams.stdout.text.omitted > 0 || this.#streams.stderr.text.omitted > 0
  }

  #add(stream: Stream, text: string): void {
    if (text === '') return
    this.#streams[stream].text.add(text)
    this.#onText(stream, text)
  }
}

/** The beginning and the end of a text of any length. */
class BoundedText {
  #head = ''
  #tail = ''
  omitted = 0

  add(text: string): void {
    const room = MAX_KEPT - this.#head.length
    this.#head += text.slice(0, room)
    this.#tail += text.slice(Math.max(room, 0))
    // Not at every call, because a cut copies the kept text.
    if (this.#tail.length > 2 * MAX_KEPT) this.#cut()
  }

  toString(): string {
    if (this.#tail.length > MAX_KEPT) this.#cut()
    if (this.omitted === 0) return this.#head + this.#tail
    return `${this.#head}\n… (${this.omitted} characters are left out here)\n${this.#tail}`
  }

  #cut(): void {
    this.omitted += this.#tail.length - MAX_KEPT
    this.#tail = this.#tail.slice(-MAX_KEPT)
  }
}
