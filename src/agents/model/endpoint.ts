import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from '@ai-sdk/provider'
import type { Clock } from '../../runtime/clock.ts'
import { orAborted } from '../../runtime/wait.ts'
import { EndpointFailure, explainEndpointFailure, type Recovery } from './failures.ts'
import type { ModelProvider } from './providers.ts'
import { type ModelResponse, readModelResponse, readStream } from './response.ts'
import { ModelTransport, NotStreamed } from './transport.ts'

/** Milliseconds that an endpoint may be silent: a model of one's own reads a long request for minutes. */
const SILENCE_MS = 10 * 60_000

/** How often a request is repeated. */
const RETRIES: Partial<Record<Recovery, number>> = { again: 3, patience: 6 }

/** Milliseconds before the first retry if the endpoint names no time; doubled for each further one. */
const FIRST_WAIT_MS = 1_000

/** Longest wait in milliseconds; a longer one that the endpoint asks for is a failure. */
const MAX_WAIT_MS = 5 * 60_000

/** One request to a model. */
export interface ModelRequest {
  readonly prompt: LanguageModelV4Prompt
  readonly tools: LanguageModelV4FunctionTool[]
  /** Ends the request at once. */
  readonly signal: AbortSignal
  /** Receives the response's text in pieces. If a response breaks off, the next one starts from the beginning. */
  onText(piece: string): void
  /** Receives notices for a person, such as a retry. */
  onNotice(text: string): void
}

/** A model behind an endpoint. Retries failed requests if that may help. */
export class ModelEndpoint {
  readonly #provider: ModelProvider
  readonly #clock: Clock
  readonly #silenceMs: number
  /** Whether it streams responses; true until it refuses. */
  #streams = true

  /** @param silenceMs milliseconds that the endpoint may send nothing */
  constructor(provider: ModelProvider, clock: Clock, silenceMs: number = SILENCE_MS) {
    this.#provider = provider
    this.#clock = clock
    this.#silenceMs = silenceMs
  }

  /**
   * Requests a response. Waits between retries by berth's clock.
   *
   * @throws EndpointFailure if there is no response; the reason of the signal
   */
  async ask(request: ModelRequest): Promise<ModelResponse> {
    for (let failed = 0; ; failed += 1) {
      const streams = this.#streams
      try {
        return await this.#request(request, streams)
      } catch (error) {
        request.signal.throwIfAborted()
        if (!(error instanceof EndpointFailure)) throw error
        if (error.recovery === 'whole' && streams) this.#stopStreaming(error, request)
        else await this.#recover(error, failed, request)
      }
    }
  }

  #stopStreaming(failure: EndpointFailure, { onNotice }: ModelRequest): void {
    this.#streams = false
    onNotice(`${failure.message} It is asked for whole answers.`)
  }

  /** Resolves when it may be asked again. @param failed how many attempts have failed before this one */
  async #recover(
    failure: EndpointFailure,
    failed: number,
    { signal, onNotice }: ModelRequest,
  ): Promise<void> {
    const retries = RETRIES[failure.recovery] ?? 0
    if (failed >= retries) {
      throw retries === 0
        ? failure
        : new EndpointFailure(`${failure.message} It was asked ${failed + 1} times.`, 'nothing')
    }
    const waitMs = failure.retryAfterMs ?? FIRST_WAIT_MS * 2 ** failed
    if (waitMs > MAX_WAIT_MS) {
      const asks = `It asks to wait for ${seconds(waitMs)}, longer than berth does.`
      throw new EndpointFailure(`${failure.message} ${asks} Try again later.`, 'nothing')
    }
    onNotice(`${failure.message} It is asked again in ${seconds(waitMs)} (${failed + 1} of ${retries}).`)
    await this.#wait(waitMs, signal)
  }

  async #request({ prompt, tools, signal, onText }: ModelRequest, streams: boolean): Promise<ModelResponse> {
    const provider = this.#provider
    using transport = new ModelTransport({ provider, streams, silenceMs: this.#silenceMs, signal })
    const model = await provider.connect(transport.send)
    const call: LanguageModelV4CallOptions = {
      prompt: withCachePoints(prompt),
      tools,
      abortSignal: transport.signal,
      ...provider.settings,
    }
    try {
      if (!streams) return readModelResponse(await model.doGenerate(call))
      try {
        const { stream } = await model.doStream(call)
        return await readStream(stream, onText)
      } catch (error) {
        if (!(error instanceof NotStreamed)) throw error
        const response = readModelResponse(await model.doGenerate(call))
        this.#streams = false
        return response
      }
    } catch (error) {
      throw transport.silence ?? explainEndpointFailure(provider, error)
    }
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#clock.after(ms, resolve, { name: 'model.retry', id: null })
    return orAborted(promise, signal).finally(() => timer.cancel())
  }
}

/**
 * Marks what Anthropic may cache: the text before a mark costs a tenth when it is sent again. Other protocols ignore
 * the marks.
 */
function withCachePoints(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const mark = { anthropic: { cacheControl: { type: 'ephemeral' as const } } }
  return prompt.map((message, index) =>
    index === 0 || index === prompt.length - 1 ? { ...message, providerOptions: mark } : message,
  )
}

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`
