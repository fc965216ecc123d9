import type { Site, SiteHost, SiteOptions, Upstream } from './sites/upstream.ts'

/** How long requests under way may keep an app in whose place something else came. */
const DRAIN_MS = 10_000

/** Whether an app's site listens, and where its requests go: that is remembered while it does not. */
export class Exposure {
  readonly #sites: SiteHost
  readonly #options: SiteOptions
  #site: Promise<Site> | null = null
  #upstream: Upstream
  #closed = false

  /** @param upstream where requests go at first */
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

  /** Sets where requests go from now on. */
  setUpstream(upstream: Upstream): void {
    this.#upstream = upstream
    void this.#site?.then((site) => site.setUpstream(upstream))
  }

  /** Resolves when no request is under way any more at an app's port. */
  async drained(port: number): Promise<void> {
    await (await this.#site)?.drained(port)
  }

  /** Sends requests elsewhere; resolves when the last ones before are served, or after a while. */
  async replace(upstream: Upstream): Promise<void> {
    const before = this.#upstream
    this.setUpstream(upstream)
    if (before.kind === 'app') await Promise.race([this.drained(before.port), Bun.sleep(DRAIN_MS)])
  }
}
