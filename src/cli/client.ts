import { EventSourceParserStream } from 'eventsource-parser/stream'
import {
  type ArgumentsOf,
  type CallId,
  type HttpRequest,
  type PartsOf,
  type ResponseOf,
  requestOf,
  type StreamEventOf,
  type StreamId,
} from '../route-client/client.ts'
import { CommandError, NO_CONNECTION } from './errors.ts'
import type { InstanceConnection } from './find-instance.ts'

/** An instance to call. The credential is null for operations that need none. */
type ClientTarget = Omit<InstanceConnection, 'credential'> & { readonly credential: string | null }

/**
 * Calls one running berth. Every failure is a CommandError that names cause and remedy. None of them contains the
 * key.
 */
export class Client {
  constructor(private readonly instance: ClientTarget) {}

  /** The instance's address, without a trailing slash. */
  get baseUrl(): string {
    return this.instance.baseUrl
  }

  /**
   * Sends one request. Resolves to the JSON of its response.
   *
   * @throws CommandError
   */
  async call<Id extends CallId>(id: Id, ...parts: ArgumentsOf<Id>): Promise<ResponseOf<Id>> {
    const request = requestOf(id, ...parts)
    const response = await this.send(request, 'application/json')
    const text = await response.text().catch((error: unknown) => this.throwConnectionLost(error, request))
    try {
      return JSON.parse(text) as ResponseOf<Id>
    } catch {
      throw this.notBerthError(response.status)
    }
  }

  /**
   * Sends one request. Yields the server-sent events of its response as they arrive.
   *
   * @throws CommandError
   */
  async *stream<Id extends StreamId>(
    id: Id,
    ...parts: ArgumentsOf<Id>
  ): AsyncGenerator<StreamEventOf<Id>, void> {
    const request = requestOf(id, ...parts)
    const response = await this.send(request, 'text/event-stream')
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw this.notBerthError(response.status)
    try {
      const events = response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream())
      for await (const { event, data } of events) {
        const parsed: unknown = JSON.parse(data)
        if (event === 'error')
          throw this.errorFromBody(parsed as FailureBody) ?? this.notBerthError(response.status)
        yield { event, data: parsed } as StreamEventOf<Id>
      }
    } catch (error) {
      if (error instanceof CommandError) throw error
      if (error instanceof SyntaxError) throw this.notBerthError(response.status)
      this.throwConnectionLost(error, request)
    }
  }

  /**
   * Sends one request. Yields the bytes of its response as they arrive.
   *
   * @param accept the media type to ask for
   * @throws CommandError
   */
  async *bytes<Id extends CallId>(
    id: Id,
    accept: string,
    ...parts: ArgumentsOf<Id>
  ): AsyncGenerator<Uint8Array, void> {
    const request = requestOf(id, ...parts)
    const response = await this.send(request, accept)
    if (!response.body || response.headers.get('content-type') !== accept)
      throw this.notBerthError(response.status)
    try {
      yield* response.body
    } catch (error) {
      this.throwConnectionLost(error, request)
    }
  }

  /** Reports whether the instance has stopped, is stopping or cannot be reached. */
  async isGone(): Promise<boolean> {
    try {
      await this.call('control.health')
      return false
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      return error.code === NO_CONNECTION || error.code === 'service_unavailable'
    }
  }

  /** Opens a WebSocket, with the credential in its handshake. */
  socket(id: 'terminals.attach', parts: PartsOf<'terminals.attach'>): WebSocket {
    const { path } = requestOf(id, parts)
    const { baseUrl, credential } = this.instance
    const headers = { 'x-berth-client': 'cli', authorization: `Bearer ${credential}` }
    return new WebSocket(`${baseUrl.replace(/^http/, 'ws')}${path}`, { headers })
  }

  /** Sends a request with the instance's credential. Returns a successful response. @throws CommandError */
  private async send(request: HttpRequest, accept: string): Promise<Response> {
    const { method, path, form, bytes, lastEventId, signal } = request
    const { credential } = this.instance
    const headers: Record<string, string> = { accept, 'x-berth-client': 'cli' }
    if (credential !== null) headers.authorization = `Bearer ${credential}`
    // fetch sets the type of a form, which contains its boundary.
    if (form === undefined && request.body !== undefined) headers['content-type'] = 'application/json'
    if (bytes !== undefined) headers['content-type'] = 'application/octet-stream'
    if (lastEventId !== undefined) headers['last-event-id'] = lastEventId
    const body = form ?? bytes ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
    let response: Response
    try {
      response = await fetch(`${this.instance.baseUrl}${path}`, {
        method,
        headers,
        // The key is for this address only, so redirects are not followed.
        redirect: 'manual',
        // A command may print nothing for longer than fetch's default timeout.
        timeout: false,
        ...(body === undefined ? {} : { body }),
        ...(signal && { signal }),
      })
    } catch (error) {
      if (signal?.aborted) throw error
      throw new CommandError(
        `Nothing answers at ${this.instance.baseUrl} (${causeOf(error)}). Start it with "berth serve", or correct the address; "berth list" shows what runs here.`,
        1,
        NO_CONNECTION,
      )
    }
    if (response.ok) return response
    throw await this.errorFromResponse(response)
  }

  private async errorFromResponse(response: Response): Promise<CommandError> {
    const body = (await response.json().catch(() => null)) as FailureBody | null
    // The pages of apps have errors of the same form, but no request of berth's own.
    const isOfApp = response.status === 404 && !response.headers.has('x-request-id')
    return (isOfApp ? null : this.errorFromBody(body)) ?? this.notBerthError(response.status)
  }

  /** Returns the error in the body of a failed request; null if the body has none. */
  errorFromBody(body: FailureBody | null): CommandError | null {
    if (typeof body?.error !== 'string' || typeof body.message !== 'string') return null
    const message =
      body.error === 'missing_or_invalid_api_key' && this.instance.source === 'login'
        ? `The key that berth login has left for ${this.instance.baseUrl} is not valid any more. Run "berth login ${this.instance.baseUrl}".`
        : body.message
    return new CommandError(withCode(message, body.error), 1, body.error)
  }

  /**
   * Throws the error of a connection that ended within a response: the signal's reason if it aborted, else that berth
   * is gone.
   */
  private throwConnectionLost(error: unknown, { signal }: HttpRequest): never {
    if (signal?.aborted) throw error
    throw new CommandError(
      `The connection to ${this.instance.baseUrl} broke (${causeOf(error)}). Is berth still running?`,
      1,
      NO_CONNECTION,
    )
  }

  private notBerthError(status: number): CommandError {
    return new CommandError(
      `The program at ${this.instance.baseUrl} does not speak berth's API (HTTP ${status}). Check the address: it may be that of an app.`,
    )
  }
}

/** Adds the code of an error to its message: at the end of its first line, since others may be those of a log. */
function withCode(message: string, code: string): string {
  const end = message.indexOf('\n')
  if (end === -1) return `${message} (${code})`
  const first = message.slice(0, end)
  const line = first.endsWith(':') ? `${first.slice(0, -1)} (${code}):` : `${first} (${code})`
  return line + message.slice(end)
}

/** The body of a failed request, unchecked. */
export interface FailureBody {
  error?: unknown
  message?: unknown
}

function causeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message ?? error)
}
