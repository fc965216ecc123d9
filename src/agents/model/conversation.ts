import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { firstCharacters } from '../../runtime/characters.ts'
import type { ModelResponse, Reasoning } from './response.ts'

/** Characters of a token, about. */
const CHARACTERS_OF_TOKEN = 4

/** To how much of that a conversation is shortened, so it is not done at every step. */
const SHORTENED_TO = 0.6

/** Characters that are left of a text that is shortened. */
const LEFT_OF_TEXT = 200

/** Most characters of the note that replaces a cut text. @bound reader */
const MAX_MARK = 50

/** Turns at the end that are shortened last. */
const RECENT = 4

/** A tool call and its result. */
export interface ToolExchange {
  readonly id: string
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly output: string
  readonly ok: boolean
  /** Metadata that the endpoint wants back with the call. */
  readonly signed?: Reasoning['signed']
}

/** A response of the model, and berth's reply to it. */
interface Turn {
  readonly text: string
  readonly reasoning: readonly Reasoning[]
  readonly exchanges: readonly ToolExchange[]
  /** A further message to the model. */
  readonly reply: string | null
}

/** A turn and its characters, about. */
interface MeasuredTurn {
  readonly turn: Turn
  readonly length: number
}

/**
 * The messages between berth and a model. Whole turns are shortened or dropped, so a call and its result stay
 * together.
 */
export class Conversation {
  readonly #system: string
  readonly #goal: string
  #turns: MeasuredTurn[] = []
  #dropped = 0
  #most: number

  /**
   * @param tokens most tokens of a request, estimated; an endpoint with a smaller model reports an error
   */
  constructor(system: string, goal: string, tokens: number) {
    this.#system = system
    this.#goal = goal
    this.#most = tokens * CHARACTERS_OF_TOKEN
  }

  /** Adds a response, with the results of its calls. */
  add(
    { text, reasoning }: ModelResponse,
    exchanges: readonly ToolExchange[],
    reply: string | null = null,
  ): void {
    this.#turns.push(measured({ text, reasoning, exchanges, reply }))
  }

  /** Characters of the next request, about. */
  get length(): number {
    return this.#turns.reduce((sum, { length }) => sum + length, this.#system.length + this.#goal.length)
  }

  /**
   * Shortens old turns if a request would be too long.
   *
   * @returns whether it did
   */
  fit(): boolean {
    return this.length > this.#most && this.#shortenTo(this.#most * SHORTENED_TO)
  }

  /**
   * Shortens old turns to half of the length, because the model accepts less than expected.
   *
   * @returns whether it could
   */
  tighten(): boolean {
    this.#most = Math.floor(this.length / 2)
    return this.#shortenTo(this.#most * SHORTENED_TO)
  }

  /** Returns the next request. */
  prompt(): LanguageModelV4Prompt {
    const goal =
      this.#dropped === 0
        ? this.#goal
        : `${this.#goal}\n\n(${this.#dropped} steps that you have taken since are left out here.)`
    return [
      { role: 'system', content: this.#system },
      { role: 'user', content: [{ type: 'text', text: goal }] },
      ...this.#turns.flatMap(({ turn }) => toMessages(turn)),
    ]
  }

  #shortenTo(wanted: number): boolean {
    const before = this.length
    const last = this.#turns.length - 1
    this.#shortenUntil(last + 1 - RECENT, wanted)
    while (this.length > wanted && this.#turns.length > RECENT) {
      this.#turns.shift()
      this.#dropped += 1
    }
    this.#shortenUntil(last, wanted)
    const newest = this.#turns.at(-1)
    if (newest && this.length > wanted) {
      // The model waits for the newest result, so keep as much of it as fits.
      const texts = Math.max(1, newest.turn.exchanges.length)
      const room = Math.floor((wanted - (this.length - newest.length)) / texts)
      this.#turns.splice(-1, 1, measured(shortened(newest.turn, Math.max(room, LEFT_OF_TEXT))))
    }
    return this.length < before
  }

  /** Shortens the turns before `end`, the oldest first, until the rest fits. */
  #shortenUntil(end: number, wanted: number): void {
    for (let at = 0; at < Math.min(end, this.#turns.length - 1) && this.length > wanted; at += 1) {
      const one = this.#turns[at]
      if (one) this.#turns[at] = measured(shortened(one.turn, LEFT_OF_TEXT))
    }
  }
}

const measured = (turn: Turn): MeasuredTurn => ({ turn, length: JSON.stringify(turn).length })

/** Returns a turn whose texts have at most `left` characters. Drops reasoning: it is signed and cannot be cut. */
const shortened = ({ text, exchanges, reply }: Turn, left: number): Turn => ({
  text: truncate(text, left),
  reasoning: [],
  exchanges: exchanges.map((one) => ({
    ...one,
    input: Object.fromEntries(
      Object.entries(one.input).map(([name, value]) => [
        name,
        typeof value === 'string' ? truncate(value, left) : value,
      ]),
    ),
    output: truncate(one.output, left),
  })),
  reply,
})

/** Returns the beginning of a text, with a note about the rest. Does not cut that note again. */
function truncate(text: string, left: number): string {
  if (text.length <= left + MAX_MARK) return text
  const kept = firstCharacters(text, left)
  return `${kept}… (${text.length - kept.length} more characters were here)`
}

function toMessages({ text, reasoning, exchanges, reply }: Turn): LanguageModelV4Message[] {
  const said: LanguageModelV4Message = {
    role: 'assistant',
    content: [
      ...reasoning.map(({ text, signed }) => ({ type: 'reasoning' as const, text, ...options(signed) })),
      // An empty text is refused by some.
      ...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]),
      ...exchanges.map(({ id, tool, input, signed }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        toolName: tool,
        input,
        ...options(signed),
      })),
    ],
  }
  const results: LanguageModelV4Message = {
    role: 'tool',
    content: exchanges.map(({ id, tool, output, ok }) => ({
      type: 'tool-result',
      toolCallId: id,
      toolName: tool,
      output: { type: ok ? 'text' : 'error-text', value: output },
    })),
  }
  return [
    ...(said.content.length > 0 ? [said] : []),
    ...(exchanges.length > 0 ? [results] : []),
    ...(reply === null ? [] : [{ role: 'user' as const, content: [{ type: 'text' as const, text: reply }] }]),
  ]
}

const options = (signed: Reasoning['signed']) => (signed ? { providerOptions: signed } : {})
