import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream'
import { CommandError } from './errors.ts'
import type { Instance } from './instance.ts'

/** The code of errors where there is no connection, or none any more. */
export const NO_CONNECTION = 'no_connection'

/** What a request carries beside method and path. */
export interface RequestParts {
  query?: Record<string, string>
  /** Sent as JSON. */
  body?: unknown
  /** Sent instead of a body, as multipart/form-data. */
  form?: FormData
  /** Ends the request, and with it what it started. */
  signal?: AbortSignal
}

/** The instance to talk to; without a credential for what needs none. */
export type Addressed = Omit<Instance, 'credential'> & { readonly credential: string | null }

/** Talks to one running berth. Every failure is a CommandError that a person can act on; none shows the key. */
export class Client {
  constructor(private readonly instance: Addressed) {}

  /** The instance's address, without a trailing slash. */
  get baseUrl(): string {
    return this.instance.baseUrl
  }

  /** One request; resolves to the answer's JSON. */
  async request<Answer>(method: string, path: string, parts: RequestParts = {}): Promise<Answer> {
    const response = await this.send(method, path, 'application/json', parts)
    const text = await response.text().catch((error: unknown) => this.broken(error, parts))
    try {
      return JSON.parse(text) as Answer
    } catch {
      throw this.notBerth(response.status)
    }
  }

  /** One request whose answer is a stream of server-sent events, told as they come. @throws CommandError for a failure among them */
  async *events(
    method: string,
    path: string,
    parts: RequestParts = {},
  ): AsyncGenerator<EventSourceMessage, void> {
    const response = await this.send(method, path, 'text/event-stream', parts)
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw this.notBerth(response.status)
    try {
      const events = response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream())
      for await (const event of events) {
        if (event.event === 'error')
          throw this.refused(JSON.parse(event.data)) ?? this.notBerth(response.status)
        yield event
      }
    } catch (error) {
      if (error instanceof CommandError) throw error
      this.broken(error, parts)
    }
  }

  private async send(method: string, path: string, accept: string, parts: RequestParts): Promise<Response> {
    const query = parts.query ? `?${new URLSearchParams(parts.query)}` : ''
    const { credential } = this.instance
    const headers: Record<string, string> = { accept }
    if (credential !== null) headers.authorization = `Bearer ${credential}`
    // The type of a form names its boundary: fetch writes it.
    if (parts.body !== undefined) headers['content-type'] = 'application/json'
    const body = parts.form ?? (parts.body === undefined ? undefined : JSON.stringify(parts.body))
    let response: Response
    try {
      response = await fetch(`${this.instance.baseUrl}${path}${query}`, {
        method,
        headers,
        // The key belongs to this address: where a redirect leads is not followed.
        redirect: 'manual',
        // A command may be silent for longer than fetch waits by itself.
        timeout: false,
        ...(body === undefined ? {} : { body }),
        ...(parts.signal ? { signal: parts.signal } : {}),
      })
    } catch (error) {
      if (parts.signal?.aborted) throw error
      throw new CommandError(
        `Nothing answers at ${this.instance.baseUrl} (${causeOf(error)}). Start it with "berth serve", or correct --base-url.`,
        1,
        NO_CONNECTION,
      )
    }
    if (response.ok) return response
    throw await this.failure(response)
  }

  private async failure(response: Response): Promise<CommandError> {
    const body = (await response.json().catch(() => null)) as Refusal | null
    return this.refused(body) ?? this.notBerth(response.status)
  }

  /** What the body of a failure tells; null where it is none. */
  private refused(body: Refusal | null): CommandError | null {
    if (typeof body?.error !== 'string' || typeof body.message !== 'string') return null
    const message =
      body.error === 'missing_or_invalid_api_key' && this.instance.source === 'login'
        ? `The key that berth login has left for ${this.instance.baseUrl} is not valid any more. Run "berth login ${this.instance.baseUrl}".`
        : body.message
    return new CommandError(`${message} (${body.error})`, 1, body.error)
  }

  /** The connection ended amid an answer: on purpose, or because berth is gone. */
  private broken(error: unknown, { signal }: RequestParts): never {
    if (signal?.aborted) throw error
    throw new CommandError(
      `The connection to ${this.instance.baseUrl} broke (${causeOf(error)}). Is berth still running?`,
      1,
      NO_CONNECTION,
    )
  }

  private notBerth(status: number): CommandError {
    return new CommandError(
      `What answers at ${this.instance.baseUrl} does not speak berth's API (HTTP ${status}). Check the address.`,
    )
  }
}

/** The body of a failure, unchecked. */
interface Refusal {
  error?: unknown
  message?: unknown
}

function causeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message ?? error)
}
