import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ComputeError } from '../../compute/driver.ts'
import type { SiteHost } from '../../hosting/sites/upstream.ts'
import type { ServersService } from '../servers/service.ts'
import { HostedApp, type HostedAppOptions, type HostedAppParts } from './app.ts'
import type { PromisedPort, SitePorts } from './ports.ts'
import type { Preparation } from './prepare.ts'
import { siteUrl } from './site-url.ts'

/** Ids of what has an app, and a log of its own. */
const APP_ID = /^(?:prj|srv)_/

/** What hosting needs. */
interface HostingDependencies extends Omit<HostedAppParts, 'servers'> {
  servers: ServersService
  sites: SiteHost
  sitePorts: SitePorts
  preparation: Preparation
  /** The address that sites listen on. */
  host: string
}

/** The apps that answer under ports of their own: those of projects and what servers publish. */
export class Hosting {
  readonly preparation: Preparation
  readonly #dependencies: HostingDependencies
  readonly #apps = new Map<string, HostedApp>()
  readonly #opening = new Map<string, Promise<HostedApp>>()
  /** Fires when a server stops; by server. */
  readonly #stops = new Map<string, AbortController>()

  constructor(dependencies: HostingDependencies) {
    this.#dependencies = dependencies
    this.preparation = dependencies.preparation
  }

  /** A port that nothing of berth has. @throws GatewayError where there is none */
  reservePort(): Promise<PromisedPort> {
    return this.#dependencies.sitePorts.reserve()
  }

  /** Where a site answers. */
  urlOf(port: number): string {
    return siteUrl(this.#dependencies.host, port)
  }

  /** The app of this id, made where there is none yet. */
  app(options: HostedAppOptions): Promise<HostedApp> {
    const { id } = options
    const present = this.#apps.get(id)
    if (present) return Promise.resolve(present)
    const opening =
      this.#opening.get(id) ??
      HostedApp.open(options, this.#dependencies)
        .then((app) => {
          this.#apps.set(id, app)
          return app
        })
        .finally(() => this.#opening.delete(id))
    this.#opening.set(id, opening)
    return opening
  }

  /** The app of this id, where there is one. */
  find(id: string): HostedApp | undefined {
    return this.#apps.get(id)
  }

  /** Ends an app and removes what is kept of it. */
  async forget(id: string): Promise<void> {
    await this.#opening.get(id)
    const app = this.#apps.get(id)
    this.#apps.delete(id)
    await app?.remove()
  }

  /** Fires when the server stops next. */
  whileRunning(serverId: string): AbortSignal {
    const stop = this.#stops.get(serverId) ?? new AbortController()
    this.#stops.set(serverId, stop)
    return stop.signal
  }

  /** Removes the logs of apps that are gone: a kill may have kept them. */
  async sweep(): Promise<void> {
    const { logs } = this.#dependencies
    const names = await readdir(logs).catch(() => [])
    const gone = names.filter((id) => APP_ID.test(id) && !this.#apps.has(id))
    await Promise.all(gone.map((id) => rm(join(logs, id), { recursive: true, force: true })))
  }

  /** The server stops: its apps end with it. */
  serverStops(serverId: string): void {
    this.#stops.get(serverId)?.abort(new ComputeError('The server was stopped.'))
    this.#stops.delete(serverId)
    for (const app of this.#ofServer(serverId)) app.serverStops()
  }

  /** The server is gone, and its apps with it. */
  async serverGone(serverId: string): Promise<void> {
    await Promise.all(this.#ofServer(serverId).map(({ id }) => this.forget(id)))
  }

  /** Berth stops: nothing is brought up any more, sites close, logs are written. */
  async stop(): Promise<void> {
    await Promise.all([...this.#apps.values()].map((app) => app.close()))
  }

  #ofServer(serverId: string): HostedApp[] {
    return [...this.#apps.values()].filter((app) => app.serverId === serverId)
  }
}
