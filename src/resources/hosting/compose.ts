import { eq } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import { deployments } from '../deployments/table.ts'
import { projects } from '../projects/table.ts'
import type { ServerFollower } from '../servers/follower.ts'
import type { ServerRow } from '../servers/table.ts'
import type { Assembled } from './assemble.ts'
import type { AssemblyParts } from './parts.ts'
import { siteUrl } from './site-url.ts'

/**
 * Projects and deployments, loaded when the first is asked for: a start waits for none of it, and a
 * server without any starts and stops as if there were no such thing.
 */
export function composeHosting(parts: AssemblyParts): HostingEntry {
  return new HostingEntry(parts)
}

/** The way to projects and deployments. */
export class HostingEntry implements ServerFollower {
  readonly #parts: AssemblyParts
  readonly #assembled: () => Promise<Assembled>
  #loaded: Assembled | null = null
  #stopped = false

  constructor(parts: AssemblyParts) {
    this.#parts = parts
    this.#assembled = once(async () => {
      const { assemble } = await import('./assemble.ts')
      this.#loaded = assemble(parts)
      return this.#loaded
    })
  }

  /** The projects. */
  readonly projects = async () => (await this.#assembled()).projects

  /** The deployments. */
  readonly deployments = async () => (await this.#assembled()).deployments

  /** What finds out how apps are started, installs and builds them. */
  readonly preparation = async () => (await this.#assembled()).preparation

  /** Whether an account has a project of this id. */
  ownsProject(accountId: string, id: string): boolean {
    const found = this.#parts.queries
      .select({ accountId: projects.accountId })
      .from(projects)
      .where(eq(projects.id, id))
      .get()
    return found?.accountId === accountId
  }

  /** Opens the sites of before: callers wait there until the apps run again. */
  async open(): Promise<void> {
    if (this.#any()) await (await this.#assembled()).open()
  }

  /** Takes up the bring-ups of before. The servers of before run again. */
  async resume(): Promise<void> {
    if (this.#any() && !this.#stopped) (await this.#assembled()).resume()
  }

  /** Ends everything; the records stay as they are, so that the next start brings it up again. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loaded?.stop()
  }

  /** Closes the sites, when nothing answers any more. */
  async close(): Promise<void> {
    await this.#loaded?.close()
  }

  started({ id }: { id: string }): void {
    if (this.#loaded) this.#loaded.serverStarted(id)
    else if (this.#any(id)) void this.#assembled().then((hosting) => hosting.serverStarted(id))
  }

  stopping(serverId: string): void {
    this.#loaded?.serverStops(serverId)
  }

  /** What the server publishes goes with it, whether it runs or sleeps: subscribers wait for that. */
  removing(row: ServerRow): void {
    const { queries, outbox, host } = this.#parts
    const published = queries.select().from(deployments).where(eq(deployments.serverId, row.id)).get()
    if (published) {
      const url = siteUrl(host, published.port)
      outbox.emit(row.accountId, 'deployment.removed', { server_id: row.id, url })
    }
    this.#loaded?.serverGoes(row)
  }

  async removed(serverId: string): Promise<void> {
    await this.#loaded?.serverGone(serverId)
  }

  #any(serverId?: string): boolean {
    const { queries } = this.#parts
    return [projects, deployments].some((table) => {
      const found = queries.select({ id: table.id }).from(table)
      const one = serverId === undefined ? found : found.where(eq(table.serverId, serverId))
      return one.limit(1).get() !== undefined
    })
  }
}
