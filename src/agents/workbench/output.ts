import { firstCharacters, lastCharacters } from '../../runtime/characters.ts'
import { ExactDecoder, exactBytes } from '../../runtime/exact-text.ts'
import type { MaskStream, Masks } from '../../runtime/masks.ts'
import { type PrintedFields, printedFields, readableText } from '../../runtime/printed.ts'

/** Most characters kept of the beginning, and of the end, of each stream. @bound program */
const MAX_KEPT = 32 * 1024

const STREAMS = ['stdout', 'stderr'] as const

type Stream = (typeof STREAMS)[number]

/**
 * Collects a command's output and passes it on while it is printed. Masks secrets in both, before bytes become text or
 * base64, which would hide a secret from the masks.
 */
export class CommandOutput {
  readonly #onText: (stream: Stream, text: string) => void
  readonly #streams: Record<Stream, { decoder: ExactDecoder; mask: MaskStream; text: BoundedText }>

  /**
   * @param show receives readable text, with U+FFFD for bytes that are not UTF-8
   */
  constructor(masks: Masks, show: (stream: Stream, text: string) => void) {
    this.#onText = show
    const stream = () => ({ decoder: new ExactDecoder(), mask: masks.stream(), text: new BoundedText() })
    this.#streams = { stdout: stream(), stderr: stream() }
  }

  /** Adds the next bytes. */
  write(stream: Stream, data: Uint8Array): void {
    const { decoder, mask } = this.#streams[stream]
    this.#add(stream, mask.push(decoder.push(data)))
  }

  /** Returns the whole output, after its end. */
  end(): PrintedFields {
    const fields = STREAMS.map((stream) => {
      const { decoder, mask, text } = this.#streams[stream]
      this.#add(stream, mask.push(decoder.end()))
      this.#add(stream, mask.flush())
      return printedFields(stream, exactBytes(text.toString()))
    })
    return Object.assign({ stdout: '', stderr: '' }, ...fields)
  }

  /** Reports whether some of the output was dropped. */
  get truncated(): boolean {
    return this.#streams.stdout.text.omitted > 0 || this.#streams.stderr.text.omitted > 0
  }

  #add(stream: Stream, text: string): void {
    if (text === '') return
    this.#streams[stream].text.add(text)
    this.#onText(stream, text.isWellFormed() ? text : readableText(exactBytes(text)))
  }
}

/** The beginning and the end of a text of any length. */
class BoundedText {
  #head = ''
  #tail = ''
  #isHeadFull = false
  omitted = 0

  add(text: string): void {
    const begun = this.#isHeadFull ? '' : firstCharacters(text, MAX_KEPT - this.#head.length)
    this.#head += begun
    // A character of two units may have left one free.
    this.#isHeadFull ||= begun.length < text.length
    this.#tail += text.slice(begun.length)
    // Not at every call, because a cut copies the kept text.
    if (this.#tail.length > 2 * MAX_KEPT) this.#cut()
  }

  toString(): string {
    if (this.#tail.length > MAX_KEPT) this.#cut()
    if (this.omitted === 0) return this.#head + this.#tail
    return `${this.#head}\n… (${this.omitted} characters are left out here)\n${this.#tail}`
  }

  #cut(): void {
    const kept = lastCharacters(this.#tail, MAX_KEPT)
    this.omitted += this.#tail.length - kept.length
    this.#tail = kept
  }
}
