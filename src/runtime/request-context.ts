import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Knows on behalf of which request code runs: in its handler, and in all work that the handler began and that goes on
 * when the request has been responded to, such as a task.
 */
export class RequestContext {
  readonly #requests = new AsyncLocalStorage<{ id: string | null }>()

  /** Runs the work of a request. Its id is not known yet: see `begin`. */
  run<T>(work: () => T): T {
    return this.#requests.run({ id: null }, work)
  }

  /** Sets the id of the request that runs. Has no effect outside of `run`, or a second time. */
  begin(id: string): void {
    const request = this.#requests.getStore()
    if (request !== undefined) request.id ??= id
  }

  /** The id of the request on whose behalf this runs; null if there is none. */
  get requestId(): string | null {
    return this.#requests.getStore()?.id ?? null
  }
}
