import type {
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'

/** What a model answered. */
export interface Answer {
  readonly text: string
  readonly calls: readonly LanguageModelV4ToolCall[]
  /** What it thought, as far as the endpoint wants it back. */
  readonly thoughts: readonly Thought[]
  /** Why it stopped: of its own accord, at the longest that it may say, or since it declines. */
  readonly stop: 'end' | 'length' | 'refusal'
  /** Tokens, where the endpoint reports them. */
  readonly usage: Tokens | null
}

/** Tokens that were read and written. */
export interface Tokens {
  readonly input: number
  readonly output: number
}

/** A thought that the endpoint has signed, and wants back as it was beside the calls that it led to. */
export interface Thought {
  text: string
  signed?: SharedV4ProviderMetadata
}

/** Reads an answer that came in one piece. @throws Error where it is none */
export function wholeAnswer({ content, finishReason, usage }: LanguageModelV4GenerateResult): Answer {
  const parts = new Parts()
  for (const part of content) {
    if (part.type === 'text') parts.text += part.text
    else if (part.type === 'tool-call') parts.calls.push(part)
    else if (part.type === 'reasoning')
      parts.think(String(parts.thoughts.size), part.text, part.providerMetadata)
  }
  return parts.end(finishReason, usage)
}

/**
 * Reads an answer that comes in pieces.
 *
 * @param onText receives its text as it comes
 * @throws what the stream fails of, or holds as an error; Error where it ends before the answer does
 */
export async function streamedAnswer(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: (piece: string) => void,
): Promise<Answer> {
  const parts = new Parts()
  let finish: Extract<LanguageModelV4StreamPart, { type: 'finish' }> | undefined
  for await (const part of stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') {
      parts.text += part.delta
      onText(part.delta)
    } else if (part.type === 'tool-call') parts.calls.push(part)
    else if (part.type === 'reasoning-delta') parts.think(part.id, part.delta, part.providerMetadata)
    else if (part.type === 'reasoning-start') parts.think(part.id, '', part.providerMetadata)
    else if (part.type === 'finish') finish = part
  }
  if (!finish) throw new Error(TOO_EARLY)
  return parts.end(finish.finishReason, finish.usage)
}

const TOO_EARLY = 'it ended too early'

/** An answer as it grows. */
class Parts {
  text = ''
  readonly calls: LanguageModelV4ToolCall[] = []
  readonly thoughts = new Map<string, Thought>()

  think(id: string, text: string, signed: SharedV4ProviderMetadata | undefined): void {
    const thought: Thought = this.thoughts.get(id) ?? { text: '' }
    thought.text += text
    if (signed) thought.signed = { ...thought.signed, ...signed }
    this.thoughts.set(id, thought)
  }

  end({ unified }: LanguageModelV4FinishReason, usage: LanguageModelV4Usage): Answer {
    if (unified === 'error' || unified === 'interrupted') throw new Error(TOO_EARLY)
    const input = counted(usage.inputTokens.total)
    const output = counted(usage.outputTokens.total)
    return {
      text: this.text,
      calls: this.calls,
      thoughts: [...this.thoughts.values()].filter(({ signed }) => signed !== undefined),
      stop: unified === 'length' ? 'length' : unified === 'content-filter' ? 'refusal' : 'end',
      // An endpoint that reports nothing is read as one that counted to nothing.
      usage: input > 0 ? { input, output } : null,
    }
  }
}

/** Tokens as they can be counted: a negative number would give back what other answers have used. */
const counted = (reported: number | undefined): number =>
  reported !== undefined && reported > 0 ? Math.ceil(reported) : 0
