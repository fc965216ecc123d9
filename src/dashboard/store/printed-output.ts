import { type ReadonlySignal, signal } from '@preact/signals'
import type { OutputChunk } from '../../route-client/client.ts'

/** Characters of output that are kept: its end. @bound program */
const MOST_CHARACTERS = 200_000

/** Milliseconds in which output is gathered before it is shown. */
const GATHER_MS = 50

/** A part of what a command printed. */
interface Printed {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
}

/** What is shown of a command's output. */
interface ShownOutput {
  readonly parts: readonly Printed[]
  /** Whether the beginning is not kept. */
  readonly isCut: boolean
}

/** What a command has printed: its end, in the order in which it came. */
export class PrintedOutput {
  readonly #shown = signal<ShownOutput>({ parts: [], isCut: false })
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  #waiting: Printed[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  /** What is shown of it. */
  get shown(): ReadonlySignal<ShownOutput> {
    return this.#shown
  }

  /** Adds a part of the output. */
  print(stream: 'stdout' | 'stderr', chunk: OutputChunk): void {
    const bytes = 'encoding' in chunk && Uint8Array.from(atob(chunk.data), (one) => one.charCodeAt(0))
    const text = bytes ? this.#decoders[stream].decode(bytes, { stream: true }) : chunk.data
    this.#waiting.push({ stream, text })
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS)
  }

  /** Shows at once what is gathered. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length === 0) return
    const shown = this.#shown.peek()
    const parts = [...shown.parts]
    for (const { stream, text } of this.#waiting) {
      const last = parts.at(-1)
      if (last?.stream === stream) parts[parts.length - 1] = { stream, text: last.text + text }
      else parts.push({ stream, text })
    }
    this.#waiting = []
    let surplus = parts.reduce((sum, { text }) => sum + text.length, 0) - MOST_CHARACTERS
    const isCut = shown.isCut || surplus > 0
    while (surplus > 0 && parts[0]) {
      const { stream, text } = parts[0]
      if (text.length <= surplus) parts.shift()
      else parts[0] = { stream, text: text.slice(surplus) }
      surplus -= text.length
    }
    this.#shown.value = { parts, isCut }
  }
}
