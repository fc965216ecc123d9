import { type ReadonlySignal, signal } from '@preact/signals'
import type { ServerUsage } from '../../resources/usage/model.ts'
import type { ApiClient } from '../api/client.ts'
import type { PageContext } from '../api/session.ts'

/** Milliseconds before a connection that was lost is made again. */
const RETRY_MS = 2_000

/** Milliseconds in which measurements are gathered before they are shown: those of many servers arrive together. */
const GATHER_MS = 100

/**
 * The usage of servers, which berth measures while a screen shows it and the page is visible. A WebSocket does not count among
 * the six connections that a browser has to a host.
 */
export class UsageStream {
  readonly #api: ApiClient
  readonly #base: string
  readonly #all = signal<ReadonlyMap<string, ServerUsage>>(new Map())
  /** How many show each: the id of a server, or '' for all. */
  readonly #shown = new Map<string, number>()
  readonly #sockets = new Map<string, WebSocket>()
  #waiting: (readonly [string, ServerUsage | null])[] = []
  #isFollowing = false

  constructor(api: ApiClient, { base_url: baseUrl }: Pick<PageContext, 'base_url'>) {
    this.#api = api
    this.#base = baseUrl.replace(/^http/, 'ws')
  }

  /** What is known, by server. Follow it as long as it is shown. */
  get all(): ReadonlySignal<ReadonlyMap<string, ServerUsage>> {
    return this.#all
  }

  /**
   * Follows the usage of a server, or without an id of all.
   *
   * @returns a function that ends it
   */
  follow(serverId = ''): () => void {
    if (!this.#isFollowing) {
      this.#isFollowing = true
      document.addEventListener('visibilitychange', () => this.#update())
    }
    this.#shown.set(serverId, (this.#shown.get(serverId) ?? 0) + 1)
    this.#update()
    return () => {
      const left = (this.#shown.get(serverId) ?? 1) - 1
      if (left === 0) this.#shown.delete(serverId)
      else this.#shown.set(serverId, left)
      this.#update()
    }
  }

  #isWanted(serverId: string): boolean {
    return !document.hidden && this.#shown.has(serverId)
  }

  #update(): void {
    for (const [serverId, socket] of this.#sockets) {
      if (this.#isWanted(serverId)) continue
      this.#sockets.delete(serverId)
      // A browser complains of one that is closed before it is open.
      if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close()
      else socket.close()
    }
    for (const serverId of this.#shown.keys())
      if (this.#isWanted(serverId) && !this.#sockets.has(serverId)) this.#connect(serverId)
  }

  #connect(serverId: string): void {
    const path = serverId === '' ? '/usage/servers' : `/servers/${encodeURIComponent(serverId)}/usage`
    const socket = new WebSocket(`${this.#base}${path}`)
    this.#sockets.set(serverId, socket)
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as { type: string; id: string; value: ServerUsage | null }
      if (message.type === 'usage') this.#add([[message.id, message.value]])
      else void this.#load(serverId)
    }
    socket.onclose = () => {
      if (this.#sockets.get(serverId) !== socket) return
      // It stays in the list until then, so that it is not made twice.
      setTimeout(() => {
        if (this.#sockets.get(serverId) === socket) this.#sockets.delete(serverId)
        this.#update()
      }, RETRY_MS)
    }
  }

  /** Loads the servers that the stream does not send since they do not run. Its messages since then are newer. */
  async #load(serverId: string): Promise<void> {
    const load = async (): Promise<readonly ServerUsage[]> =>
      serverId === ''
        ? (await this.#api.call('usage.servers')).servers
        : [(await this.#api.call('usage.get', { params: { serverId } })).usage]
    // Without it the next message does.
    const found = await load().catch(() => [])
    const all = this.#all.peek()
    this.#add(
      found.flatMap((usage) => {
        const known = all.get(usage.server_id)
        return known && known.measured_at > usage.measured_at ? [] : [[usage.server_id, usage] as const]
      }),
    )
  }

  #add(measured: readonly (readonly [string, ServerUsage | null])[]): void {
    if (measured.length === 0) return
    if (this.#waiting.length === 0)
      setTimeout(() => {
        const all = new Map(this.#all.peek())
        for (const [id, usage] of this.#waiting.splice(0)) {
          if (usage === null) all.delete(id)
          else all.set(id, usage)
        }
        this.#all.value = all
      }, GATHER_MS)
    this.#waiting.push(...measured)
  }
}
