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

  /** Has the site listen; one that was closed for good does not any more. */
  async open(): Promise<void> {
    if (this.#closed) return
    this.#site ??= this.#sites.open(this.#options)
    const site = await this.#site
    site.point(this.#upstream)
  }

  /** Has nothing listen any more. */
  async conceal(): Promise<void> {
    const site = this.#site
    this.#site = null
    await (await site)?.close()
  }

  /** Has nothing listen from now on. */
  closeForGood(): void {
    this.#closed = true
  }

  /** Sends requests there from now on. */
  point(upstream: Upstream): void {
    this.#upstream = upstream
    void this.#site?.then((site) => site.point(upstream))
  }

  /** Resolves when no request is under way any more at an app's port. */
  async drained(port: number): Promise<void> {
    await (await this.#site)?.drained(port)
  }

  /** Sends requests elsewhere; resolves when the last ones before are served, or after a while. */
  async replace(upstream: Upstream): Promise<void> {
    const before = this.#upstream
    this.point(upstream)
    if (before.kind === 'app') await Promise.race([this.drained(before.port), Bun.sleep(DRAIN_MS)])
  }
}
