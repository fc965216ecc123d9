import type { ServerPort, Site, SiteHost, SiteOptions, Upstream } from './sites/upstream.ts'

/** Milliseconds that a replaced app may take to finish its requests. */
const DRAIN_MS = 10_000

/** Opens and closes an app's site. Remembers its upstream while the site is closed. */
export class Exposure {
  readonly #sites: SiteHost
  readonly #options: SiteOptions
  #site: Promise<Site> | null = null
  #upstream: Upstream
  #closed = false

  /**
   * @param upstream first target of requests
   */
  constructor(sites: SiteHost, options: SiteOptions, upstream: Upstream) {
    this.#sites = sites
    this.#options = options
    this.#upstream = upstream
  }

  /** Opens the site. Does nothing after `closePermanently`. */
  async open(): Promise<void> {
    if (this.#closed) return
    this.#site ??= this.#sites.open(this.#options)
    const site = await this.#site
    site.setUpstream(this.#upstream)
  }

  /** Closes the site. */
  async close(): Promise<void> {
    const site = this.#site
    this.#site = null
    await (await site)?.close()
  }

  /** Makes `open` do nothing from now on. */
  closePermanently(): void {
    this.#closed = true
  }

  /** Sets the target of requests. */
  setUpstream(upstream: Upstream): void {
    this.#upstream = upstream
    void this.#site?.then((site) => site.setUpstream(upstream))
  }

  /** Resolves when no request is under way at an app's port. */
  async drained(port: ServerPort): Promise<void> {
    await (await this.#site)?.drained(port)
  }

  /** Changes the upstream. Resolves when requests at the previous app are served, or after ten seconds. */
  async replace(upstream: Upstream): Promise<void> {
    const before = this.#upstream
    this.setUpstream(upstream)
    if (before.kind === 'app') await Promise.race([this.drained(before), Bun.sleep(DRAIN_MS)])
  }
}
