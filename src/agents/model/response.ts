import type {
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'

/** A model's response. */
export interface ModelResponse {
  readonly text: string
  readonly calls: readonly LanguageModelV4ToolCall[]
  /** Its reasoning, if the endpoint wants it back. */
  readonly reasoning: readonly Reasoning[]
  /** Why it stopped: it was done, reached its longest length, or declined. */
  readonly stop: 'end' | 'length' | 'refusal'
  /** Tokens, if the endpoint reports them. */
  readonly usage: TokenCount | null
}

/** Tokens that were read and written. */
export interface TokenCount {
  readonly input: number
  readonly output: number
}

/** Reasoning that the endpoint has signed and wants back, unchanged, with the calls that followed from it. */
export interface Reasoning {
  text: string
  signed?: SharedV4ProviderMetadata
}

/**
 * Reads a response that was not streamed.
 *
 * @throws Error if it is incomplete
 */
export function readModelResponse({
  content,
  finishReason,
  usage,
}: LanguageModelV4GenerateResult): ModelResponse {
  const builder = new ResponseBuilder()
  for (const part of content) {
    if (part.type === 'text') builder.text += part.text
    else if (part.type === 'tool-call') builder.calls.push(part)
    else if (part.type === 'reasoning')
      builder.addReasoning(String(builder.reasoning.size), part.text, part.providerMetadata)
  }
  return builder.build(finishReason, usage)
}

/**
 * Reads a streamed response.
 *
 * @param onText receives its text in pieces
 * @throws the stream's error, or one that it contains; Error if it ends early
 */
export async function readStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: (piece: string) => void,
): Promise<ModelResponse> {
  const builder = new ResponseBuilder()
  let finish: Extract<LanguageModelV4StreamPart, { type: 'finish' }> | undefined
  for await (const part of stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') {
      builder.text += part.delta
      onText(part.delta)
    } else if (part.type === 'tool-call') builder.calls.push(part)
    else if (part.type === 'reasoning-delta') builder.addReasoning(part.id, part.delta, part.providerMetadata)
    else if (part.type === 'reasoning-start') builder.addReasoning(part.id, '', part.providerMetadata)
    else if (part.type === 'finish') finish = part
  }
  if (!finish) throw new Error(TOO_EARLY)
  return builder.build(finish.finishReason, finish.usage)
}

const TOO_EARLY = 'it ended too early'

/** A response while it is being read. */
class ResponseBuilder {
  text = ''
  readonly calls: LanguageModelV4ToolCall[] = []
  readonly reasoning = new Map<string, Reasoning>()

  addReasoning(id: string, text: string, signed: SharedV4ProviderMetadata | undefined): void {
    const thought: Reasoning = this.reasoning.get(id) ?? { text: '' }
    thought.text += text
    if (signed) thought.signed = { ...thought.signed, ...signed }
    this.reasoning.set(id, thought)
  }

  build({ unified }: LanguageModelV4FinishReason, usage: LanguageModelV4Usage): ModelResponse {
    if (unified === 'error' || unified === 'interrupted') throw new Error(TOO_EARLY)
    const input = counted(usage.inputTokens.total)
    const output = counted(usage.outputTokens.total)
    return {
      text: this.text,
      calls: this.calls,
      reasoning: [...this.reasoning.values()].filter(({ signed }) => signed !== undefined),
      stop: unified === 'length' ? 'length' : unified === 'content-filter' ? 'refusal' : 'end',
      // An endpoint that reports nothing is read as one that counted to nothing.
      usage: input > 0 ? { input, output } : null,
    }
  }
}

/** Returns a count that can be added up: a negative one would give back what other responses have used. */
const counted = (reported: number | undefined): number =>
  reported !== undefined && reported > 0 ? Math.ceil(reported) : 0
