import { ComputeError } from '../../compute/compute-error.ts'
import type { Clock } from '../../runtime/clock.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { IncomingFiles, refusalOf, storageLeft } from '../projects/incoming-files.ts'
import type { UnfinishedPushes } from '../projects/unfinished-pushes.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { FileChange } from './file-change.ts'
import type { DeploymentPush, DeploymentPushResult, PublishedDeployment } from './model.ts'

/** Files that are published as soon as they are in place. */
export interface PushedVersion {
  readonly change: FileChange
  /** Ends the publication if aborted before the app responds. The version before goes on. */
  readonly withdrawn: AbortSignal
  /** Called when the files are in place. */
  applied(): void
}

/** Dependencies of the pushes. */
interface PushDependencies {
  clock: Clock
  servers: ServersService
  /** Where changes of files are recorded until they have come up. */
  unfinished: UnfinishedPushes
  /** Reports whether a path of a server's workspace is in a project. */
  isInProject: (serverId: string, path: string) => boolean
  /** Changes the files and publishes them. */
  publish: (server: ServerRow, version: PushedVersion, directory: string) => Promise<PublishedDeployment>
}

/** A publication of pushed files under way. */
interface RunningPush {
  readonly withdraw: AbortController
  readonly ended: Promise<unknown>
}

/** A push whose files are in place, or which lacks some. */
type BegunPush =
  | { readonly missing: readonly string[] }
  | {
      readonly missing: null
      readonly written: number
      readonly change: FileChange
      readonly published: Published
    }

/** The outcome of a publication, in an object so that `await` does not wait for it. */
interface Published {
  readonly outcome: Promise<PublishedDeployment>
}

/** Makes the files of workspaces what a directory elsewhere has, and publishes them. Only what differs has to be sent. */
export class DeploymentPushes {
  readonly #dependencies: PushDependencies
  /** Receives and applies one push of a server at a time. */
  readonly #mutex = new KeyedMutex()
  readonly #incoming: IncomingFiles
  readonly #running = new Map<string, RunningPush>()

  constructor(dependencies: PushDependencies) {
    this.#dependencies = dependencies
    this.#incoming = new IncomingFiles(dependencies.clock, (id, run) => this.#mutex.run(id, run))
  }

  /**
   * Takes a part of a push. With the last part, changes the files and publishes them. A push that is published still is
   * withdrawn before.
   *
   * @param archive the content of the files that differ, and of no others that are not described
   * @throws BerthError 400 for a path or an archive that is refused, and those of the publication
   */
  async push(
    server: ServerRow,
    pushed: DeploymentPush,
    archive: Uint8Array | null,
  ): Promise<DeploymentPushResult> {
    const begun = await this.#mutex.run(server.id, () => this.#begin(server, pushed, archive))
    if (begun.missing !== null)
      return { missing: [...begun.missing], written: 0, removed: 0, deployment: null }
    const { written, change, published } = begun
    const deployment = await published.outcome
    return { missing: [], written, removed: change.removed, deployment }
  }

  async #begin(server: ServerRow, pushed: DeploymentPush, archive: Uint8Array | null): Promise<BegunPush> {
    const { servers, isInProject } = this.#dependencies
    const { id } = server
    const workspace = servers.workspace(server)
    const target = { id, workspace, directory: '', room: () => storageLeft(servers, server) }
    try {
      const received = await this.#incoming.receive(target, pushed, archive)
      const { missing, tree, written } = received
      if (missing.length > 0) return { missing }
      if (await this.#withdraw(id)) {
        // Its files may have been put back, so that others are there than those compared.
        const lacking = await this.#incoming.missingNow(target, pushed, received)
        if (lacking.length > 0) return { missing: lacking }
      }
      const wanted = new Set([...pushed.files, ...(pushed.links ?? [])].map(({ path }) => path))
      const { clean = false, removed = [], directory = '' } = pushed
      const files = { wanted, isClean: clean, written, tree, removed }
      const app = { ...target, serverId: id, unfinished: this.#dependencies.unfinished }
      const change = new FileChange(app, files, (path) => isInProject(id, path))
      const published = await this.#publish(server, change, directory)
      await this.#incoming.discard(id)
      return { missing: null, written: written.length, change, published }
    } catch (error) {
      await this.#incoming.discard(id)
      throw refusalOf(error)
    }
  }

  /** Ends a push that is published still, and waits until its files are put back. Reports whether there was one. */
  async #withdraw(serverId: string): Promise<boolean> {
    const running = this.#running.get(serverId)
    running?.withdraw.abort(new ComputeError('A later deploy has taken its place.'))
    await running?.ended
    return running !== undefined
  }

  /** Begins to publish. Resolves when the files are in place. */
  async #publish(server: ServerRow, change: FileChange, directory: string): Promise<Published> {
    const withdraw = new AbortController()
    const applied = Promise.withResolvers<void>()
    const version = { change, withdrawn: withdraw.signal, applied: () => applied.resolve() }
    const outcome = this.#dependencies.publish(server, version, directory)
    const ended = outcome
      .catch(() => {})
      .finally(() => {
        this.#running.delete(server.id)
        return change[Symbol.asyncDispose]()
      })
    this.#running.set(server.id, { withdraw, ended })
    await Promise.race([applied.promise, outcome])
    return { outcome }
  }
}
