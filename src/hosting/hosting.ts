/**
 * Apps and files behind URLs. `Hosting` makes a `HostedApp` for each project and deployment. `preparation.ts` detects,
 * installs and builds; `app-runtime/supervisor.ts` starts an app and restarts it after a crash, as often as
 * `app-runtime/supervision.ts` allows; `app-runtime/health-search.ts` decides which response means that it is up;
 * `sites/` is the gateway before it, `static/` serves files, and `page/` looks at the first page of an app for
 * warnings.
 *
 * The other doors are `app.ts` (an app's plan, log and failure), `detection/detect.ts` (finds out how a source is run;
 * each language is a file of `detection/providers/`, and some have a directory: `detection/python/app-objects.ts` lists
 * Python's frameworks), `registries/packages.ts` (the relay of package registries) and
 * `sites/no-site.ts` (responds at a port where no app is).
 */

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AcceptAtPort, AnsweringPorts } from '../compute/compute.ts'
import { ComputeError } from '../compute/sandbox.ts'
import type { PortRange } from '../config/config.ts'
import type { HostRoutes } from '../http/listener.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { Masks } from '../runtime/masks.ts'
import { AppLog } from './app-runtime/log/log.ts'
import { AppPorts } from './app-runtime/ports.ts'
import {
  type AppServers,
  HostedApp,
  type HostedAppDependencies,
  type HostedAppOptions,
} from './hosted-app.ts'
import { Preparation } from './preparation.ts'
import type { Packages } from './registries/packages.ts'
import { Gateway } from './sites/gateway.ts'
import { SlugHosts } from './sites/main-port/slug-hosts.ts'
import { type ReservedPort, siteUrl } from './sites/upstream.ts'

export type { HostedApp } from './hosted-app.ts'
export type { AppEnvironment, AppWorkspace, Preparation } from './preparation.ts'

/** Matches the ids of projects and servers, which have an app and its log. */
const APP_ID = /^(?:prj|srv)_/

/** Dependencies of `Hosting`. */
interface HostingDependencies {
  clock: Clock
  logger: Logger
  servers: AppServers
  /** Returns the ports of recorded sites. */
  recordedPorts: () => number[]
  /** Address that berth and its sites listen on. */
  host: string
  /** Another name that the Host header may carry. */
  publicHost: string | null
  /** Ports for sites. */
  ports: PortRange
  /** The packages that servers share. */
  packages: Packages
  /** Absolute path of the data directory. */
  dataDir: string
  /** Whether apps get the same ports in every run. */
  repeatable: boolean
  /** See `HostedAppDependencies.mayReadLogs`. */
  mayReadLogs: HostedAppDependencies['mayReadLogs']
  recorder: HostedAppDependencies['recorder']
}

/** The ways to sites besides listeners on their ports. */
export interface SiteRoutes {
  /** Routes requests of the main port for `SLUG.localhost`. */
  readonly hosts: HostRoutes
  /** Begins to serve a connection that a program of a server opened to a port; returns null if no site has it. */
  readonly accept: AcceptAtPort
  /** The ports that `accept` serves. */
  readonly ports: AnsweringPorts
}

/** The apps with sites of their own: those of projects and those that servers publish. */
export class Hosting {
  /** Detects how apps are started, installs and builds them. */
  readonly preparation: Preparation
  /** The ways to sites besides their own ports. */
  readonly routes: SiteRoutes
  readonly #packages: Packages
  readonly #gateway: Gateway
  readonly #recordedPorts: () => number[]
  readonly #appDependencies: HostedAppDependencies
  /** Address that sites listen on. */
  readonly #host: string
  readonly #apps = new Map<string, HostedApp>()
  readonly #opening = new Map<string, Promise<HostedApp>>()
  /** Controllers by server. Each aborts when its server stops. */
  readonly #stopControllers = new Map<string, AbortController>()

  constructor(dependencies: HostingDependencies) {
    const { clock, logger, servers, host, publicHost, ports, dataDir, repeatable } = dependencies
    this.#packages = dependencies.packages
    this.#gateway = new Gateway({ host, publicHost, ports, logger })
    this.#recordedPorts = dependencies.recordedPorts
    this.#host = host
    this.routes = {
      hosts: new SlugHosts(this.#gateway),
      accept: (port, socket) => this.#gateway.accept(port, socket),
      ports: this.#gateway.ports,
    }
    this.preparation = new Preparation(this.#packages)
    this.#appDependencies = {
      clock,
      logger,
      servers,
      sites: this.#gateway,
      preparation: this.preparation,
      urlOf: (port) => this.urlOf(port),
      appPorts: new AppPorts({ repeatable }),
      slugOf: (id) => this.#apps.get(id)?.slug ?? null,
      logsDirectory: join(dataDir, 'logs'),
      credentialOf: (serverId) => this.#packages.tokenOf(serverId),
      mayReadLogs: dependencies.mayReadLogs,
      recorder: dependencies.recorder,
    }
  }

  /**
   * Reserves a port that no project and no deployment has, and that no other program can take until it is released.
   * Release it when it is in a record and its site, if it gets one, is open.
   *
   * @throws GatewayError if there is none
   */
  reservePort(): Promise<ReservedPort> {
    const recorded = new Set(this.#recordedPorts())
    this.claimPorts()
    return this.#gateway.reserve((port) => recorded.has(port))
  }

  /** Keeps other berths of this machine from choosing the ports of recorded sites, open or not. */
  claimPorts(): void {
    this.#gateway.claim(this.#recordedPorts())
  }

  /** Returns the URL of the site on a port. */
  urlOf(port: number): string {
    return siteUrl(this.#host, port)
  }

  /** Returns the variable from which the app on a port knows its URL. It has no slash at its end. */
  addressVariable(port: number): { BERTH_URL: string } {
    return { BERTH_URL: this.urlOf(port).replace(/\/$/, '') }
  }

  /** Returns the app of this id; creates it if there is none. */
  app(options: HostedAppOptions): Promise<HostedApp> {
    const { id } = options
    const present = this.#apps.get(id)
    if (present) return Promise.resolve(present)
    const opening =
      this.#opening.get(id) ??
      HostedApp.open(options, this.#appDependencies)
        .then((app) => {
          this.#apps.set(id, app)
          return app
        })
        .finally(() => this.#opening.delete(id))
    this.#opening.set(id, opening)
    return opening
  }

  /** Returns the app of this id, or undefined. */
  find(id: string): HostedApp | undefined {
    return this.#apps.get(id)
  }

  /** Removes an app and its log. */
  async remove(id: string): Promise<void> {
    await this.#opening.get(id)
    const app = this.#apps.get(id)
    this.#apps.delete(id)
    await app?.remove()
  }

  /**
   * Removes an app whose site was never recorded. Its log stays, for a person to see why it did not come up.
   */
  async drop(id: string): Promise<void> {
    const app = this.#apps.get(id)
    this.#apps.delete(id)
    await app?.drop()
  }

  /** Opens the log of an app that is not here (any more), to be read. The caller closes it. */
  openLog(id: string): Promise<AppLog> {
    const { clock, logger, logsDirectory } = this.#appDependencies
    return AppLog.open({ dir: join(logsDirectory, id), clock, logger, masks: new Masks() })
  }

  /** Returns a signal that aborts when the server stops next. */
  stopSignal(serverId: string): AbortSignal {
    const stop = this.#stopControllers.get(serverId) ?? new AbortController()
    this.#stopControllers.set(serverId, stop)
    return stop.signal
  }

  /** Removes the logs of apps that no longer exist, which a kill may have left behind. */
  async removeStaleLogs(): Promise<void> {
    const { logsDirectory } = this.#appDependencies
    const names = await readdir(logsDirectory).catch(() => [])
    const stale = names.filter((id) => APP_ID.test(id) && !this.#apps.has(id))
    await Promise.all(stale.map((id) => rm(join(logsDirectory, id), { recursive: true, force: true })))
  }

  /** Ends the apps of a server that is about to stop, or whose sandbox has ended. */
  serverStopping(serverId: string): void {
    this.#stopControllers.get(serverId)?.abort(new ComputeError('The server was stopped.'))
    this.#stopControllers.delete(serverId)
    for (const app of this.#ofServer(serverId)) app.serverStopping()
  }

  /** Removes the apps and logs of a deleted server. */
  async serverDeleted(serverId: string): Promise<void> {
    this.#packages.forget(serverId)
    await Promise.all(this.#ofServer(serverId).map(({ id }) => this.remove(id)))
    // That of what the server tried to publish, without success.
    await rm(join(this.#appDependencies.logsDirectory, serverId), { recursive: true, force: true })
  }

  /** Releases the apps and writes their logs. Their processes end with their servers. Sites stay open. */
  async stop(): Promise<void> {
    await Promise.all([...this.#apps.values()].map((app) => app.close()))
  }

  /** Closes the sites. The servers have stopped before. */
  close(): Promise<void> {
    return this.#gateway.close()
  }

  #ofServer(serverId: string): HostedApp[] {
    return [...this.#apps.values()].filter((app) => app.serverId === serverId)
  }
}
