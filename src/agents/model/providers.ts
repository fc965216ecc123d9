import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { AgentConfig } from '../../config/agents.ts'

/** How requests of a model go out. */
export type Send = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

/** An endpoint that speaks one of the two protocols, and the model to ask for there. */
export interface ModelProvider {
  /** Without a slash at the end. */
  readonly baseUrl: string
  readonly key: string | null
  readonly model: string
  /** Prefix of the names of the options that set these. */
  readonly options: 'openai' | 'anthropic'
  /** Settings of every request. */
  readonly settings: Pick<LanguageModelV4CallOptions, 'maxOutputTokens' | 'providerOptions'>
  /** Returns the model, whose requests are sent by `send`. */
  connect(send: Send): Promise<LanguageModelV4>
}

/** Enough for a long file. Models that are known to give less are asked for less. @bound system */
const MAX_OUTPUT_TOKENS = 32_000

/** OpenAI's chat completions, which self-hosted model servers speak too. */
export function openaiProvider(config: AgentConfig): ModelProvider {
  const { openaiBaseUrl: baseUrl, openaiApiKey: key } = config
  const model = config.openaiModel ?? ''
  return {
    baseUrl,
    key,
    model,
    options: 'openai',
    settings: {},
    async connect(send) {
      const { OpenAICompatibleChatLanguageModel } = await import('@ai-sdk/openai-compatible')
      return new OpenAICompatibleChatLanguageModel(model, {
        provider: 'openai.chat',
        url: ({ path }) => `${baseUrl}${path}`,
        headers: key === null ? {} : { authorization: `Bearer ${key}` },
        fetch: send as typeof fetch,
        includeUsage: true,
      })
    },
  }
}

/** Anthropic's messages. */
export function anthropicProvider(config: AgentConfig): ModelProvider {
  const { anthropicBaseUrl: baseUrl, anthropicApiKey: key } = config
  const model = config.anthropicModel ?? ''
  return {
    baseUrl,
    key,
    model,
    options: 'anthropic',
    settings: {
      // The protocol demands a number.
      maxOutputTokens: MAX_OUTPUT_TOKENS,
      // Streamed arguments are of no use here, and other servers need not know that setting.
      providerOptions: { anthropic: { toolStreaming: false } },
    },
    async connect(send) {
      // Not the package's main entry: it reads Anthropic's own variables, and fails if one is empty.
      const { AnthropicLanguageModel } = await import('@ai-sdk/anthropic/internal')
      return new AnthropicLanguageModel(model, {
        provider: 'anthropic.messages',
        baseURL: baseUrl,
        headers: { 'anthropic-version': '2023-06-01', ...(key === null ? {} : { 'x-api-key': key }) },
        fetch: send as typeof fetch,
      })
    },
  }
}
