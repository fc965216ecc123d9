import { accessSync, constants } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { codeOf, messageOf, sentence } from '../../runtime/error-info.ts'
import { fieldsOf, fieldsOfJson } from '../../runtime/is-object.ts'
import { Slots } from '../../runtime/slots.ts'
import { orAborted } from '../../runtime/wait.ts'
import { EngineRefusal, orMissing } from '../engine/refusal.ts'
import { ComputeError } from '../sandbox.ts'
import { authorityOf, type Endpoint, type EngineTls } from './address.ts'
import { HijackedTransport } from './hijacked-transport.ts'
import { tlsReason } from './tls-reason.ts'

/** The newest version 1.x of the Docker Engine API whose documentation this was written from, and the oldest that does. */
const NEWEST_API = 48
const OLDEST_API = 40

/** Milliseconds for a response. A start of a container on a slow disk takes seconds. */
const RESPONSE_MS = 120_000

/**
 * Milliseconds without a response after which the engine is asked for a sign of life, and those that it has for that. One
 * that works on something for minutes gives it at once; one that is stopped still accepts connections.
 */
const QUIET_MS = 3_000
const SIGN_MS = 5_000

/** Requests under way at a time: all servers may be ended at once, and the time of a response runs from its request on. */
const AT_ONCE = 64

/** What the engine responds to whatever else it does. */
const PING = '/_ping'

/** What is said of an engine that is stopped, or whose machine is. */
const SILENT = 'it accepts connections and does not respond'

/** Longest message of an engine that is shown, in characters. @bound system */
const MAX_MESSAGE = 500

/** A request to the engine. */
interface EngineRequest {
  readonly query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: object
  /** Sent as a tar archive in place of `body`. */
  readonly archive?: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | Blob
  readonly signal?: AbortSignal
  /** Milliseconds until the response begins; 120,000 by default, null for no limit. */
  readonly timeoutMs?: number | null
}

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'

/** The engine could not be reached, or did not respond. */
export class EngineUnreachable extends ComputeError {}

/**
 * Speaks the Docker Engine API (docs.docker.com/reference/api/engine), which Podman speaks too, over a Unix socket or TCP.
 * Every request has a connection of its own: none is sent twice because an old one was closed.
 */
export class DockerClient {
  readonly #endpoint: Endpoint
  readonly #tls: EngineTls | null
  /** What a person calls the engine, with its address. */
  readonly #name: string
  readonly #url: string
  readonly #reach: () => Promise<void>
  readonly #slots = new Slots(AT_ONCE)
  #version: Promise<string> | null = null

  /**
   * @param name of the address for messages, without a credential
   * @param tls null for a connection without TLS
   * @param reach makes the endpoint lead to the engine, called before each connection; by default it does
   */
  constructor(
    endpoint: Endpoint,
    name: string,
    tls: EngineTls | null,
    reach: () => Promise<void> = async () => {},
  ) {
    const authority = endpoint.kind === 'unix' ? 'docker' : authorityOf(endpoint)
    this.#url = `${tls === null ? 'http' : 'https'}://${authority}`
    this.#endpoint = endpoint
    this.#name = name
    this.#tls = tls
    this.#reach = reach
  }

  /** Tries whether the engine responds within some milliseconds. Throws `EngineUnreachable`. */
  async ping(timeoutMs = SIGN_MS): Promise<Response> {
    const response = await this.#reached(timeoutMs, null, (late) => this.#fetch('GET', PING, {}, late))
    await response.text()
    return response
  }

  /** Returns the response's JSON. Throws `EngineRefusal`, `EngineUnreachable`. */
  async json(method: Method, path: string, request: EngineRequest = {}): Promise<unknown> {
    const response = await this.request(method, path, request)
    try {
      return await response.json()
    } catch (error) {
      throw this.#unreachable(error)
    }
  }

  /** Returns what the engine has at a path, null if there is no such thing. Throws `EngineRefusal`, `EngineUnreachable`. */
  async find(path: string): Promise<Record<string, unknown> | null> {
    return orMissing(this.json('GET', path).then(fieldsOf))
  }

  /** Makes a container. @returns its id @throws EngineRefusal @throws EngineUnreachable */
  async createContainer(name: string, settings: object): Promise<string> {
    const created = await this.json('POST', '/containers/create', { query: { name }, body: settings })
    return String(fieldsOf(created).Id)
  }

  /** Makes a request whose response nobody reads. Throws `EngineRefusal`, `EngineUnreachable`. */
  async send(method: Method, path: string, request: EngineRequest = {}): Promise<void> {
    const response = await this.request(method, path, request)
    await response.arrayBuffer()
  }

  /** Returns a response, whose body is the caller's to read. Throws `EngineRefusal`, `EngineUnreachable`. */
  async request(method: Method, path: string, request: EngineRequest = {}): Promise<Response> {
    const target = await this.#path(path, request.query)
    const { timeoutMs = RESPONSE_MS } = request
    const send = (): Promise<Response> =>
      this.#reached(timeoutMs, QUIET_MS, (late) => this.#fetch(method, target, request, late))
    // One with a time of its own is a stream, or has to be soon.
    const response = await (request.timeoutMs === undefined ? this.#slots.run(send) : send())
    if (response.ok || response.status === 304) return response
    const message = messageIn(await response.text())
    if (message.includes('HTTP request to an HTTPS server'))
      throw new EngineUnreachable(
        `${this.#name} speaks TLS alone. Name the directory with ca.pem, cert.pem and key.pem with --engine-tls.`,
      )
    throw new EngineRefusal(response.status, message)
  }

  /**
   * Makes a request that turns its connection into a stream of bytes each way, as attach and exec do.
   *
   * @throws EngineRefusal
   * @throws EngineUnreachable
   */
  async hijack(
    path: string,
    { query, body }: Pick<EngineRequest, 'query' | 'body'>,
  ): Promise<HijackedTransport> {
    const target = await this.#path(path, query)
    return this.#reached(RESPONSE_MS, QUIET_MS, (late) => this.#upgrade(target, body, late))
  }

  async #path(path: string, query: EngineRequest['query']): Promise<string> {
    this.#version ??= this.#negotiate()
    const version = await this.#version.catch((error: unknown) => {
      this.#version = null
      throw error
    })
    const text = new URLSearchParams(query).toString()
    return `/v${version}${path}${text === '' ? '' : `?${text}`}`
  }

  /** Returns the newest version that both know. */
  async #negotiate(): Promise<string> {
    const theirs = (await this.ping()).headers.get('api-version') ?? `1.${OLDEST_API}`
    const minor = Number(theirs.replace(/^1\./, ''))
    if (minor < OLDEST_API)
      throw new ComputeError(
        `${this.#name} speaks version ${theirs} of the Docker Engine API, and berth needs 1.${OLDEST_API} or later. Upgrade it.`,
      )
    return `1.${Math.min(minor, NEWEST_API)}`
  }

  /**
   * Connects to the engine and does something.
   *
   * @param act aborts it once it has taken `timeoutMs`, or once the engine, which is asked each `quietMs`, gives no sign of life
   */
  async #reached<T>(
    timeoutMs: number | null,
    quietMs: number | null,
    act: (late: AbortSignal) => Promise<T>,
  ): Promise<T> {
    await this.#reach().catch((error: unknown) => {
      throw this.#unreachable(error, sentence(messageOf(error)))
    })
    const controller = new AbortController()
    const abort = (reason: unknown): void => controller.abort(reason)
    const { signal: late } = controller
    const timer = timeoutMs === null ? undefined : setTimeout(abort, timeoutMs, new Error(SILENT))
    const looks = quietMs === null ? undefined : setInterval(() => this.ping().catch(abort), quietMs)
    try {
      return await act(late)
    } catch (error) {
      // Another error is not of the connection, such as one of what is sent.
      if (!late.aborted && codeOf(error) === undefined) throw error
      throw this.#unreachable(late.aborted ? late.reason : error)
    } finally {
      clearTimeout(timer)
      clearInterval(looks)
    }
  }

  async #fetch(method: Method, path: string, request: EngineRequest, late: AbortSignal): Promise<Response> {
    const { body, archive, signal } = request
    return fetch(this.#url + path, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
      ...(archive === undefined ? {} : { body: archive, headers: { 'Content-Type': 'application/x-tar' } }),
      ...(this.#endpoint.kind === 'unix' ? { unix: this.#endpoint.path } : {}),
      ...(this.#tls && { tls: this.#tls }),
      signal: AbortSignal.any([late, ...(signal === undefined ? [] : [signal])]),
      keepalive: false,
      redirect: 'error',
      // Bun's own limit for a silent connection; one with events may be silent for days.
      timeout: false,
    } as RequestInit)
  }

  /** Makes a request by node:http, which hands its connection over where the engine turns it into a stream. */
  async #upgrade(path: string, body: object | undefined, late: AbortSignal): Promise<HijackedTransport> {
    const content = body === undefined ? '' : JSON.stringify(body)
    const { promise, resolve, reject } = Promise.withResolvers<HijackedTransport>()
    const request = (this.#tls === null ? http : https).request(this.#url + path, {
      ...(this.#endpoint.kind === 'unix' && { socketPath: this.#endpoint.path }),
      ...this.#tls,
      ...{ method: 'POST', agent: false },
      headers: {
        ...{ Connection: 'Upgrade', Upgrade: 'tcp' },
        ...{ 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(content) },
      },
    })
    request.on('upgrade', (_, socket, head) => resolve(new HijackedTransport(socket, head)))
    request.on('response', (response) => {
      text(response).then(
        (said) => reject(new EngineRefusal(response.statusCode ?? 0, messageIn(said))),
        reject,
      )
    })
    request.on('error', reject)
    request.end(content)
    try {
      return await orAborted(promise, late)
    } catch (error) {
      request.destroy()
      throw error
    }
  }

  #unreachable(error: unknown, reason = this.#reason(error)): EngineUnreachable {
    if (error instanceof EngineUnreachable) return error
    return new EngineUnreachable(`${this.#name} cannot be reached: ${reason}`, { cause: error })
  }

  /** Returns why the engine cannot be reached and what to do, in sentences. */
  #reason(error: unknown): string {
    const endpoint = this.#endpoint
    if (endpoint.kind === 'unix') {
      try {
        accessSync(endpoint.path, constants.R_OK | constants.W_OK)
      } catch (refusal) {
        if (codeOf(refusal) === 'EACCES')
          return 'this user may not use its socket. Add the user to the group of the socket (for Docker: "sudo usermod -aG docker $USER", then log in again), or run the engine rootless.'
        return 'its socket does not exist. Start the engine (for Docker: "sudo systemctl start docker"), or name another with --engine.'
      }
    }
    const refused = this.#tls && tlsReason(error, this.#tls)
    if (refused !== null) return refused
    const reason = plainReason(error)
    return `${reason}. ${reason === SILENT ? 'Restart' : 'Start'} the engine, or name another with --engine.`
  }
}

/** Returns a refusal of the system in words. */
function plainReason(error: unknown): string {
  const code = codeOf(error) ?? ''
  if (/REFUSED|ConnectionRefused|FailedToOpenSocket/i.test(code)) return 'nothing listens there'
  if (/RESET|CLOSED|ConnectionClosed/i.test(code)) return 'it closed the connection'
  return messageOf(error).replace(/\.$/, '')
}

/** Returns the message of an error's body, which may not be of the engine itself, such as a proxy's page. */
const messageIn = (body: string): string =>
  String(fieldsOfJson(body).message ?? body)
    .trim()
    .slice(0, MAX_MESSAGE)
