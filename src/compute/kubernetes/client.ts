import { messageOf, sentence } from '../../runtime/error-info.ts'
import { fieldsOf, fieldsOfJson } from '../../runtime/is-object.ts'
import { systemRandom } from '../../runtime/random.ts'
import { Slots } from '../../runtime/slots.ts'
import { pause } from '../../runtime/wait.ts'
import { jsonLines } from '../engine/json-lines.ts'
import { EngineRefusal, isRefusal, orMissing } from '../engine/refusal.ts'
import { ComputeError } from '../sandbox.ts'
import type { ClusterAccess } from './kubeconfig.ts'

/** Milliseconds in which the API server has to respond. */
const RESPONSE_MS = 30_000

/** Requests under way at a time: all servers may be ended at once, and the time of a response runs from its request on. */
const AT_ONCE = 64

/** Objects in one response to a list: more are asked for in the next request. */
const PAGE = 500

/** Seconds after which the API server ends a watch, to be asked again: Bun ends a response of 300 s without bytes. */
const WATCH_SECONDS = 240

/** Milliseconds without a byte after which a watch is asked again; the server sends a bookmark each minute. */
const WATCH_SILENCE_MS = 100_000

/** Milliseconds to wait after a failed watch: at first, and at most. */
const RETRY_MS = { first: 250, most: 5_000 } as const

/** What every object of the API has. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly resourceVersion?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
  }
}

/** A WebSocket of Bun, which can be closed without a word to its peer. */
export type TerminableWebSocket = WebSocket & { terminate(): void }

/** One page of a list; `continue` is empty or missing in the last one. */
interface Page<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
  readonly items: readonly T[]
}

/** Receives the events of `KubernetesClient.follow`. */
export interface Followers<T> {
  /** Receives all objects, at first and each time that changes may have been missed. */
  listed(objects: readonly T[]): void
  /** Receives an object that is new or has changed. */
  changed(object: T): void
  /** Receives an object that was deleted, as it was last. */
  gone(object: T): void
}

/** Calls the API server of a cluster by Bun's own fetch, and opens its WebSockets. */
export class KubernetesClient {
  readonly #access: ClusterAccess
  readonly #page: number
  readonly #slots = new Slots(AT_ONCE)

  /** @param page most objects in one response to a list */
  constructor(access: ClusterAccess, page = PAGE) {
    this.#access = access
    this.#page = page
  }

  /** URL of the API server. */
  get server(): string {
    return this.#access.server
  }

  /**
   * Sends a request and returns the object that responds to it.
   *
   * @param path from the root, with its query
   * @throws EngineRefusal if the server refuses; ComputeError if it does not respond
   */
  async request<T = unknown>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
    return this.#slots.run(async () => {
      const response = await this.#fetch(method, path, AbortSignal.timeout(RESPONSE_MS), body)
      const value = await response.json().catch(() => null)
      if (response.ok) return value as T
      throw this.#refusal(response.status, value)
    })
  }

  /** Sends a request, and returns null if the object does not exist. */
  find<T>(path: string): Promise<T | null> {
    return orMissing(this.request<T>('GET', path))
  }

  /**
   * Asks for the end of an object. Resolves to false if it is gone already.
   *
   * @param grace the uid that it must have, to be no later one of its name, and the seconds that it has to end
   */
  async remove(path: string, grace?: { readonly uid: string; readonly seconds: number }): Promise<boolean> {
    const options =
      grace === undefined ? {} : { gracePeriodSeconds: grace.seconds, preconditions: { uid: grace.uid } }
    try {
      await this.request('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', ...options })
      return true
    } catch (error) {
      if (isRefusal(error, 404) || (grace !== undefined && isRefusal(error, 409))) return false
      throw error
    }
  }

  /**
   * Lists objects, as they were at one version, a page in each request.
   *
   * @param path of the list, with a query or none
   * @throws as `request`; EngineRefusal 410 if the list took the server longer than it keeps versions, 5 minutes
   */
  async list<T>(path: string): Promise<{ items: readonly T[]; version: string }> {
    const items: T[] = []
    for (let rest = ''; ; ) {
      const query = `limit=${this.#page}${rest === '' ? '' : `&continue=${encodeURIComponent(rest)}`}`
      const page = await this.request<Page<T>>('GET', withQuery(path, query))
      items.push(...page.items)
      rest = page.metadata.continue ?? ''
      if (rest === '') return { items, version: page.metadata.resourceVersion }
    }
  }

  /**
   * Lists objects and reports their changes until the signal aborts: by one watch from the list's version on, which is
   * asked again where it ends, and with a new list where the server no longer knows that version (410).
   *
   * @param path of the list, with a query or none
   */
  async follow<T extends KubernetesObject>(
    path: string,
    followers: Followers<T>,
    signal: AbortSignal,
  ): Promise<void> {
    let version: string | null = null
    let retryMs: number = RETRY_MS.first
    while (!signal.aborted) {
      try {
        if (version === null) {
          const list = await this.list<T>(path)
          version = list.version
          if (!signal.aborted) followers.listed(list.items)
        }
        for await (const { type, object } of this.#watch<T>(path, version, signal)) {
          if (signal.aborted) break
          retryMs = RETRY_MS.first
          version = object.metadata.resourceVersion ?? version
          if (type === 'DELETED') followers.gone(object)
          else if (type !== 'BOOKMARK') followers.changed(object)
        }
      } catch (error) {
        if (error instanceof EngineRefusal) version = null
        if (isRefusal(error, 410)) continue
        await pause(retryMs, signal)
        retryMs = Math.min(retryMs * 2, RETRY_MS.most)
      }
    }
  }

  /**
   * Opens a WebSocket with the credentials of the cluster.
   *
   * @param path from the root, with its query
   */
  async webSocket(path: string, protocol: string): Promise<TerminableWebSocket> {
    const options = { protocols: [protocol], headers: await this.#headers(false), tls: this.#access.tls }
    // Bun's WebSocket takes these options in the place of a list of protocols.
    return new WebSocket(
      this.#access.server.replace(/^http/, 'ws') + path,
      options as never,
    ) as TerminableWebSocket
  }

  /**
   * Asks again for a WebSocket that was refused, since that says no more than this.
   *
   * @throws EngineRefusal with the reason, of the API server or of a kubelet; nothing if it is accepted now
   */
  async explainRefusal(path: string, protocol: string): Promise<void> {
    const end = new AbortController()
    const signal = AbortSignal.any([end.signal, AbortSignal.timeout(RESPONSE_MS)])
    const handshake = {
      ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
      ...{ 'Sec-WebSocket-Key': systemRandom.bytes(16).toBase64(), 'Sec-WebSocket-Protocol': protocol },
    }
    try {
      const response = await this.#fetch('GET', path, signal, undefined, handshake)
      if (response.status === 101) return
      const text = await response.text()
      throw this.#refusal(response.status, { message: text.trim(), ...fieldsOfJson(text) })
    } finally {
      end.abort()
    }
  }

  /** Yields the events of one watch, until the server ends it. */
  async *#watch<T>(
    path: string,
    version: string,
    signal: AbortSignal,
  ): AsyncGenerator<{ type: string; object: T }> {
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}&resourceVersion=${version}`
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), WATCH_SILENCE_MS)
    try {
      const end = AbortSignal.any([signal, silence.signal])
      const response = await this.#fetch('GET', withQuery(path, query), end)
      if (!response.ok) throw this.#refusal(response.status, await response.json().catch(() => null))
      for await (const { type, object } of jsonLines(response)) {
        timer.refresh()
        if (type === 'ERROR') throw this.#refusal(Number(fieldsOf(object).code), object)
        yield { type: String(type), object: object as T }
      }
    } finally {
      clearTimeout(timer)
      // A loop over a body is left only when its next bytes come, unless it is aborted.
      silence.abort()
    }
  }

  async #fetch(
    method: string,
    path: string,
    signal: AbortSignal,
    body?: object,
    more: Record<string, string> = {},
  ): Promise<Response> {
    for (let refused = false; ; refused = true) {
      const headers = {
        ...(await this.#headers(refused)),
        ...more,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      }
      const init = {
        ...{ method, headers, signal, tls: this.#access.tls, redirect: 'error' as const },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }
      const response = await fetch(this.#access.server + path, init).catch((error: unknown) => {
        // Bun asks whether the computer can access the URL.
        const reason = messageOf(error).replace(/\.? Is the computer .*$/, '')
        throw new ComputeError(
          `The API server ${this.#access.server} does not respond: ${sentence(reason)} Check that it runs and that berth reaches it.`,
          { cause: error },
        )
      })
      // A token that was renewed meanwhile, or that is no longer valid before its time.
      if (response.status !== 401 || refused) return response
      await response.body?.cancel()
    }
  }

  async #headers(refused: boolean): Promise<Record<string, string>> {
    const authorization = await this.#access.authorization(refused)
    return authorization === null ? {} : { Authorization: authorization }
  }

  #refusal(status: number, body: unknown): EngineRefusal {
    const { server } = this.#access
    if (status === 401)
      return new EngineRefusal(
        status,
        `${server} does not accept the credentials of the kubeconfig. Renew them.`,
      )
    const { message } = fieldsOf(body)
    return new EngineRefusal(
      status,
      typeof message === 'string' ? message : `${server} responded with status ${status}.`,
    )
  }
}

const withQuery = (path: string, query: string): string => `${path}${path.includes('?') ? '&' : '?'}${query}`
