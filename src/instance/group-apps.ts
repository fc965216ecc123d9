import { messageOf } from '../runtime/error-info.ts'
import type { Logger } from '../runtime/logger.ts'

/** Responds to requests: an Elysia app, or a wrapper around one. */
export interface GroupApp {
  fetch(request: Request): Response | Promise<Response>
}

/** Loads the app of each group of routes at its first request, and keeps it. */
export class GroupApps<Group extends string> {
  readonly #load: (group: Group) => Promise<GroupApp>
  readonly #logger: Logger
  readonly #loaded = new Map<Group, GroupApp>()
  readonly #loading = new Map<Group, Promise<GroupApp>>()

  constructor(load: (group: Group) => Promise<GroupApp>, logger: Logger) {
    this.#load = load
    this.#logger = logger
  }

  /**
   * Returns a group's app; a promise of it while it is loaded. The promise is never rejected: if loading fails, it
   * resolves to an app that responds with 500, and the next request loads anew.
   */
  get(group: Group): GroupApp | Promise<GroupApp> {
    const ready = this.#loaded.get(group) ?? this.#loading.get(group)
    if (ready) return ready
    const loading = this.#loadOnce(group).finally(() => this.#loading.delete(group))
    this.#loading.set(group, loading)
    return loading
  }

  async #loadOnce(group: Group): Promise<GroupApp> {
    try {
      const app = await this.#load(group)
      this.#loaded.set(group, app)
      return app
    } catch (error) {
      this.#logger.error('routes could not be loaded; the next request tries again', { group, error })
      return { fetch: () => loadFailure(error) }
    }
  }
}

const loadFailure = (error: unknown): Response =>
  Response.json(
    {
      error: 'internal_error',
      message: `The code of this path could not be loaded: ${messageOf(error)}. Send the request again; if it fails again, start berth anew.`,
    },
    { status: 500 },
  )
