import type { ServeFiles, ServerPort, Site, SiteHost, SiteOptions, Upstream } from './sites/upstream.ts'

/** Milliseconds that a replaced app may take to finish its requests. */
const DRAIN_MS = 10_000

/** Opens and closes an app's site. Remembers its upstream while the site is closed. */
export class Exposure {
  readonly #sites: SiteHost
  readonly #options: SiteOptions
  #site: Promise<Site> | null = null
  readonly #status: (reason: string | null) => ServeFiles
  #upstream: Upstream
  #closed = false

  /**
   * @param upstream first target of requests
   * @param status returns what responds while nothing else does, for this reason, or null while the app starts
   */
  constructor(
    sites: SiteHost,
    options: SiteOptions,
    upstream: Upstream,
    status: (reason: string | null) => ServeFiles,
  ) {
    this.#sites = sites
    this.#options = options
    this.#status = status
    this.#upstream = this.#described(upstream)
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

  /** The target of requests. */
  get upstream(): Upstream {
    return this.#upstream
  }

  /** Sets the target of requests. */
  setUpstream(upstream: Upstream): void {
    const described = this.#described(upstream)
    this.#upstream = described
    void this.#site?.then((site) => site.setUpstream(described))
  }

  /** Has the app described in place of its responses. */
  #described(upstream: Upstream): Upstream {
    if (upstream.kind === 'down') return { kind: 'files', serve: this.#status(upstream.reason) }
    return upstream.kind === 'starting' ? { ...upstream, late: this.#status(null) } : upstream
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
