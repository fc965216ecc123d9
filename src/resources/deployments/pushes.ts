import { ComputeError } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import type { Clock } from '../../runtime/clock.ts'
import { type ChangedApp, FileChange, type UnfinishedChanges } from '../apps/file-change.ts'
import { IncomingFiles, type ReceivedFiles, storageLeft } from '../apps/incoming-files.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { DeploymentPush, DeploymentPushResult, PublishedDeployment } from './model.ts'
import type { DeploymentRow } from './table.ts'

/** Matches the paths of packages that an install makes. */
const PACKAGE = /(?:^|\/)node_modules\//

/** Files that are published as soon as they are in place. */
export interface PushedVersion {
  /** Ends the publication if aborted before the app responds. The version before goes on. */
  readonly withdrawn: AbortSignal
  /**
   * Changes the files. If that fails, none is changed.
   *
   * @param before the version to which the files belong; null if they need not be kept
   * @throws WorkspaceError for a path that cannot be written
   */
  apply(before: DeploymentRow | null): Promise<void>
  /** The change of the files; null before `apply`. */
  readonly change: FileChange | null
}

/** Dependencies of the pushes. */
interface PushDependencies {
  clock: Clock
  servers: ServersService
  /** Where changes of files are noted until they have come up. */
  unfinished: UnfinishedChanges
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

/** The outcome of a publication, in an object so that `await` does not wait for it. */
interface Published {
  readonly outcome: Promise<PublishedDeployment>
  /** Number of files and links that were removed. */
  readonly removed: () => number
}

/** Makes the files of workspaces what a directory elsewhere has, and publishes them. Only what differs has to be sent. */
export class DeploymentPushes {
  readonly #dependencies: PushDependencies
  readonly #incoming: IncomingFiles
  readonly #running = new Map<string, RunningPush>()

  constructor(dependencies: PushDependencies) {
    this.#dependencies = dependencies
    this.#incoming = new IncomingFiles(dependencies.clock)
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
    const { servers } = this.#dependencies
    const { id } = server
    const workspace = servers.workspace(server)
    const target = { id, workspace, directory: '', room: () => storageLeft(servers, server) }
    const taken = await this.#incoming.take(target, pushed, archive, {
      makeWay: () => this.#withdraw(id),
      apply: async (received) => ({
        written: received.written.length,
        published: await this.#publish(server, workspace, pushed, received),
      }),
    })
    if (taken.missing !== null)
      return { missing: [...taken.missing], written: 0, removed: 0, deployment: null }
    const { written, published } = taken.result
    const deployment = await published.outcome
    return { missing: [], written, removed: published.removed(), deployment }
  }

  /** Ends a push that is published still, and waits until its files are put back. */
  async #withdraw(serverId: string): Promise<void> {
    const running = this.#running.get(serverId)
    running?.withdraw.abort(new ComputeError('A later deploy has taken its place.'))
    await running?.ended
  }

  /** Begins to publish. Resolves when the files are in place. */
  async #publish(
    server: ServerRow,
    workspace: Workspace,
    pushed: DeploymentPush,
    received: ReceivedFiles,
  ): Promise<Published> {
    const { id } = server
    const { unfinished } = this.#dependencies
    const app: ChangedApp = {
      ...{ id, serverId: id, workspace, directory: '', unfinished },
      onPutBack: () => this.#incoming.noteChanged(id),
    }
    const withdraw = new AbortController()
    const applied = Promise.withResolvers<void>()
    let removed: string[] = []
    const version = {
      withdrawn: withdraw.signal,
      change: null as FileChange | null,
      apply: async (before: DeploymentRow | null): Promise<void> => {
        removed = await this.#removedBy(pushed, id, workspace)
        const isMade = (path: string): boolean => before?.plan.install != null && PACKAGE.test(path)
        const kept = removed.filter((path) => !isMade(path))
        const plan = before?.plan ?? null
        const change = await FileChange.begin(app, { plan, paths: [], wasUp: before !== null })
        version.change = change
        // Packages are too many to be kept, and can be installed again.
        if (kept.length < removed.length) change.markBuiltOver()
        try {
          await change.apply({ ...received, removed, kept, paths: [] })
        } catch (error) {
          await change.putBack()
          await change.discard()
          throw error
        }
        if (!change.canPutBack) await change.discard()
        applied.resolve()
      },
    }
    const outcome = this.#dependencies.publish(server, version, pushed.directory ?? '')
    const ended = outcome
      .catch(() => {})
      .finally(() => {
        this.#running.delete(id)
        return version.change?.discard()
      })
    this.#running.set(id, { withdraw, ended })
    await Promise.race([applied.promise, outcome])
    return { outcome, removed: () => removed.length }
  }

  /** Returns the paths of a workspace that a push removes. */
  async #removedBy(pushed: DeploymentPush, serverId: string, workspace: Workspace): Promise<string[]> {
    const { files, links = [], removed = [], clean = false } = pushed
    if (!clean) return (await workspace.manifest('', removed)).map(({ path }) => path)
    const wanted = new Set([...files, ...links].map(({ path }) => path))
    const [present, entries] = await Promise.all([
      workspace.list({ all: true }),
      workspace.manifest('', null),
    ])
    const linked = entries.filter(({ kind }) => kind === 'link').map(({ path }) => path)
    const isRemoved = (path: string): boolean =>
      !wanted.has(path) && !this.#dependencies.isInProject(serverId, path)
    return [...new Set([...present, ...linked])].filter(isRemoved)
  }
}
