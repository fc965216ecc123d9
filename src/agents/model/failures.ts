import { fieldsOf, isObject } from '../../runtime/is-object.ts'
import { MASK } from '../../runtime/masks.ts'
import type { ModelProvider } from './providers.ts'

/**
 * What may help after a failed request: `nothing`; `again`, to retry; `patience`, to retry after longer waits,
 * because the endpoint is overloaded; `whole`, to ask without streaming; `shorter`, to send less.
 */
export type Recovery = 'nothing' | 'again' | 'patience' | 'whole' | 'shorter'

/** A request of a model that failed. The message names cause and remedy, and never holds the key. */
export class EndpointFailure extends Error {
  override readonly name = 'EndpointFailure'
  readonly recovery: Recovery
  /** Milliseconds after which the endpoint wants a retry, if it says so. */
  readonly retryAfterMs: number | null

  constructor(message: string, recovery: Recovery, retryAfterMs: number | null = null) {
    super(message)
    this.recovery = recovery
    this.retryAfterMs = retryAfterMs
  }
}

/** An error response of the endpoint. */
interface ErrorResponse {
  status: number
  /** The endpoint's own words, without the key. */
  message: string
  /** Target of a redirect. */
  location: string | null
  retryAfterMs: number | null
}

/** Characters of the endpoint's own words that are passed on. @bound reader */
const MAX_MESSAGE = 500

const NOT_THE_PROTOCOL = 'what it sent is not what the protocol says'

/** Statuses of an endpoint that is temporarily unable. 529 is Anthropic's for an overload. */
const BUSY = [408, 409, 425, 429]

/** Codes of errors by which there is no connection at all. */
const UNREACHABLE = ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EAI_AGAIN']

/** Matches messages about a request that is too long. "context canceled" is a different error. */
const TOO_LONG =
  /context.{0,20}(?:length|size|window|overflow)|too (?:long|large)|too many tokens|token limit|maximum.{0,40}tokens/i

/** Explains an error response: its cause, and what a person or a retry can do about it. */
export function explainErrorResponse(provider: ModelProvider, response: ErrorResponse): EndpointFailure {
  const { status, message, retryAfterMs } = response
  const { model } = provider
  const endpoint = `The model's endpoint ${provider.baseUrl}`
  const words = message === '' ? '' : `: ${message}`
  const failure = (text: string, cure: Recovery = 'nothing') => new EndpointFailure(text, cure, retryAfterMs)
  if (status >= 300 && status < 400) {
    const target = response.location ? ` to ${response.location}` : ''
    return failure(
      `${endpoint} redirects${target} (${status}), and the key is sent nowhere else. Set ${setting(provider, 'base-url')} to the address itself.`,
    )
  }
  if (status === 401) {
    // Not its own words: some repeat a part of the key.
    const what = provider.key === null ? 'wants a key' : 'refused the key'
    return failure(
      `${endpoint} ${what} (401). Set ${setting(provider, 'api-key')} to one that holds there, and start berth again.`,
    )
  }
  if (status === 403) {
    return failure(
      `${endpoint} does not allow this (403)${words}. Check that the key of ${setting(provider, 'api-key')} may use the model "${model}".`,
    )
  }
  if (status === 404) {
    return failure(
      `${endpoint} has no model "${model}", or does not speak this protocol there (404)${words}. Check ${setting(provider, 'model')} and ${setting(provider, 'base-url')}.`,
    )
  }
  if (status === 402 || (status === 429 && /insufficient_quota|exceeded your current quota/.test(message))) {
    return failure(`${endpoint} has no credit left for this key (${status})${words}. Add some there.`)
  }
  if (status === 413 || (status !== 429 && TOO_LONG.test(message))) {
    return failure(`${endpoint} takes no request as long as this (${status})${words}.`, 'shorter')
  }
  if (BUSY.includes(status) || status >= 500) {
    return failure(
      `${endpoint} answered ${status}${words}.`,
      status === 501 && /stream/i.test(message) ? 'whole' : 'patience',
    )
  }
  if (/stream/i.test(message)) return failure(`${endpoint} does not stream (${status})${words}.`, 'whole')
  const remedy = /\btools?\b|function/i.test(message)
    ? ` The model must be able to call tools; choose another by ${setting(provider, 'model')} where it is not.`
    : ''
  return failure(`${endpoint} refused the request (${status})${words}.${remedy}`)
}

/**
 * Explains why there is no complete response.
 *
 * @param error what fetch, or reading the response, threw
 */
export function explainEndpointFailure(provider: ModelProvider, error: unknown): EndpointFailure {
  const endpoint = `The model's endpoint ${provider.baseUrl}`
  const root = rootOf(error)
  if (root instanceof EndpointFailure) return root
  const { code, message } = root
  if (/CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|ERR_TLS/.test(code)) {
    return new EndpointFailure(
      `${endpoint} has a certificate that cannot be trusted (${code}). Correct it or ${setting(provider, 'base-url')}. To trust an authority of your own, start berth with its file in NODE_EXTRA_CA_CERTS.`,
      'nothing',
    )
  }
  if (code === 'EPROTO') {
    return new EndpointFailure(
      `${endpoint} does not speak TLS. Correct ${setting(provider, 'base-url')}: http:// in place of https://, perhaps.`,
      'nothing',
    )
  }
  if (UNREACHABLE.includes(code)) {
    return new EndpointFailure(
      `${endpoint} cannot be reached (${code}). Start the model server, or correct ${setting(provider, 'base-url')}.`,
      'again',
    )
  }
  const text = withoutKey(provider, message)
  if (code === '' && TOO_LONG.test(text)) {
    return new EndpointFailure(`${endpoint} takes no request as long as this: ${text}.`, 'shorter')
  }
  const cause = code === 'ECONNRESET' ? 'the connection was cut' : text
  return new EndpointFailure(`${endpoint} did not respond completely: ${cause}.`, 'again')
}

/** Returns a text of the endpoint's without the key and without a full stop at the end. */
export function withoutKey({ key }: ModelProvider, text: string): string {
  const shown = key === null ? text : text.replaceAll(key, MASK)
  return shown.trim().replace(/\.$/, '').slice(0, MAX_MESSAGE)
}

/** Returns an option, as a person finds it. */
export function setting(provider: ModelProvider, name: 'base-url' | 'api-key' | 'model'): string {
  const option = `${provider.options}-${name}`
  return `BERTH_${option.toUpperCase().replaceAll('-', '_')} (--${option})`
}

/** Extracts the message of an error response; model servers use several formats. */
export function errorMessageIn(body: string): string {
  let read: unknown
  try {
    read = JSON.parse(body)
  } catch {
    return /^\s*</.test(body) ? '' : body
  }
  const { error, message, detail } = fieldsOf(read)
  const { message: inner, code } = fieldsOf(error)
  const said = [inner, message, error, detail].find((one): one is string => typeof one === 'string')
  return [said ?? body, typeof code === 'string' && said !== undefined ? `(${code})` : '']
    .filter(Boolean)
    .join(' ')
}

/** Returns the innermost cause. The outer ones describe the library, not the endpoint. */
function rootOf(error: unknown): { code: string; message: string } | EndpointFailure {
  let root = error
  const said =
    isObject(error) && typeof error.responseBody === 'string' ? errorMessageIn(error.responseBody) : null
  for (let depth = 0; depth < 8 && isObject(root) && isObject(root.cause); depth += 1) {
    // The schema's message quotes the whole response.
    if (root.name === 'AI_TypeValidationError') return { code: '', message: said ?? NOT_THE_PROTOCOL }
    root = root.cause
  }
  if (root instanceof EndpointFailure) return root
  if (!isObject(root)) return { code: '', message: String(root) }
  const { code, message } = root
  return {
    // Not one of the endpoint's own.
    code: root instanceof Error && typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message : JSON.stringify(root),
  }
}
