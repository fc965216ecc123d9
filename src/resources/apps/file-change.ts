import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { eq } from 'drizzle-orm'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { ManifestEntry, Staging, Workspace } from '../../compute/workspace.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import type { AppPlan } from '../../hosting/app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Queries } from '../../storage/database.ts'
import type { ServersService } from '../servers/service.ts'

/** Largest size of the files that are kept, in bytes. @bound program */
const MAX_KEPT_BYTES = 128 * 1024 * 1024

/** What an app was before a change of its files. */
interface VersionBefore {
  readonly plan: AppPlan | null
  /** Paths of the code that came from outside. */
  readonly paths: readonly string[]
  /** Whether the app responded. */
  readonly wasUp: boolean
  /** The app's own directory, relative to the code, if that is recorded apart from the plan. */
  readonly appDirectory?: string
}

/** The app whose files change, and where they are. */
export interface ChangedApp {
  /** Of the project, or of the server whose deployment it is. */
  readonly id: string
  readonly serverId: string
  readonly workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  /** Where the change is noted until it has come up. */
  readonly unfinished: UnfinishedChanges
  /**
   * Called when the files were put back.
   *
   * @param isBack false if that failed, so that files of both versions are there
   */
  onPutBack(isBack: boolean): void
}

/** The files that a change replaces and removes. */
export interface ChangedFiles {
  /** Directory with the files that are placed, in a staging directory; null if there are none. */
  readonly tree: string | null
  /** Paths of these. */
  readonly written: readonly string[]
  /** Paths that are removed, whether they are there or not. */
  readonly removed: readonly string[]
  /** Those removed paths that no install makes again, so that they have to be kept; by default all. */
  readonly kept?: readonly string[]
  /** Paths of the code after the change. */
  readonly paths: readonly string[]
  /** The app's own directory after the change, if that is recorded apart from the plan. */
  readonly appDirectory?: string
}

/**
 * A change of the files of an app, for a version that may not come up. A kill of berth at any moment leaves the files of
 * one version:
 *
 * 1. Stage: what is placed is complete in a staging directory of the workspace (`IncomingFiles`).
 * 2. Keep: the files that are replaced or removed are copied to another staging directory.
 * 3. Note: the database says that the files change, and what the app was before (`UnfinishedChanges`). From here on a start
 *    of berth puts the files back. If they were too large to be kept, it completes the change instead.
 * 4. Swap: files are removed, and the staged ones are placed.
 * 5. Settle: `discard` when the new version has come up, `putBack` when it has not, or `recoverChange` after a kill.
 *
 * Several changes may follow each other (`apply`) until one of their versions comes up. They are undone together.
 */
export class FileChange {
  /** What the app was before the first change. */
  readonly before: VersionBefore
  readonly #app: ChangedApp
  readonly #staging: Staging
  readonly #kept = new Set<string>()
  readonly #added = new Set<string>()
  #bytes = 0
  #isKept = true
  #isBuiltOver: boolean
  #isDiscarded = false
  #putBack: Promise<boolean> | null = null

  /** Begins without a file. */
  static async begin(app: ChangedApp, before: VersionBefore): Promise<FileChange> {
    return new FileChange(app, before, await app.workspace.staging({ isState: true }))
  }

  private constructor(app: ChangedApp, before: VersionBefore, staging: Staging) {
    this.#app = app
    this.before = before
    this.#staging = staging
    // A start may have put the files of before back, and nothing has built them since.
    this.#isBuiltOver = app.unfinished.find(app.id)?.isBuiltOver ?? false
  }

  /** Whether it is neither put back nor discarded. */
  get isOpen(): boolean {
    return !this.#isDiscarded && this.#putBack === null
  }

  /** Whether a version that was to replace the one before was installed or built, over its packages and its build. */
  get isBuiltOver(): boolean {
    return this.#isBuiltOver
  }

  /** Notes that a version that is to replace the one before is installed or built now. */
  markBuiltOver(): void {
    const { unfinished, id, serverId } = this.#app
    this.#isBuiltOver = true
    const noted = unfinished.find(id)
    if (noted !== undefined) unfinished.put(id, serverId, { ...noted, isBuiltOver: true })
  }

  /**
   * Changes the files, and keeps those of before. Discard it at once if they are not needed (`canPutBack`).
   *
   * @throws the error of a path that cannot be written. Put the files back then
   */
  async apply(change: ChangedFiles): Promise<void> {
    const { workspace, directory, unfinished, id, serverId } = this.#app
    const { written, removed, kept = removed, paths, appDirectory } = change
    this.#isKept &&= await this.#keep([...written, ...kept])
    const tree = this.#isKept ? change.tree : await this.#keepNext(change.tree)
    unfinished.put(id, serverId, {
      ...{ directory, staging: basename(this.#staging.path), state: this.#isKept ? 'before' : 'next' },
      ...{ added: this.#isKept ? [...this.#added] : [], removed: this.#isKept ? [] : removed },
      ...{ isBuiltOver: this.#isBuiltOver, nextPaths: this.#isKept ? [] : paths, ...this.before },
      ...(appDirectory === undefined ? {} : { nextAppDirectory: appDirectory }),
    })
    if (!this.#isKept) await rm(treeIn(this.#staging), { recursive: true, force: true })
    await removeFiles(workspace, directory, removed)
    if (tree !== null) await workspace.mergeIn(tree, directory)
  }

  /** Whether a version before goes on, and its files were small enough to be kept. */
  get canPutBack(): boolean {
    return this.#isKept && this.before.wasUp
  }

  /**
   * Copies the files at these paths, which are about to change. Paths that were kept before are left alone.
   *
   * @returns whether all could be kept; false if there is too much
   */
  async #keep(paths: readonly string[]): Promise<boolean> {
    const { workspace, directory } = this.#app
    const fresh = paths.filter((path) => !this.#kept.has(path) && !this.#added.has(path))
    const present = await presentEntries(workspace, directory, fresh)
    this.#bytes += present.reduce((sum, entry) => sum + (entry.kind === 'file' ? entry.size : 0), 0)
    if (this.#bytes > MAX_KEPT_BYTES) return false
    for (const entry of present) {
      const copy = join(treeIn(this.#staging), entry.path)
      await mkdir(dirname(copy), { recursive: true })
      if (entry.kind === 'link') await symlink(entry.target, copy)
      else {
        // A kill leaves no part of a file among the copies.
        const part = join(this.#staging.path, 'part')
        using file = await workspace.open(below(directory, entry.path))
        // It may have grown since it was described.
        this.#bytes += Math.max(0, file.size - entry.size)
        if (this.#bytes > MAX_KEPT_BYTES) return false
        await Bun.write(part, await file.read(0, file.size))
        await chmod(part, file.mode)
        await rename(part, copy)
      }
      this.#kept.add(entry.path)
    }
    for (const path of fresh) if (!this.#kept.has(path)) this.#added.add(path)
    return true
  }

  /** Keeps what is placed where a start finds it. */
  async #keepNext(tree: string | null): Promise<string | null> {
    if (tree === null) return null
    const kept = nextIn(this.#staging)
    await rename(tree, kept)
    return kept
  }

  /**
   * Puts the files back, and removes those that were added. What the app has made meanwhile stays. If it was built over, a
   * start still knows, until `discard`. Later calls do nothing more.
   *
   * @returns whether the files are back; false if they were not kept, or it was discarded before
   */
  putBack(): Promise<boolean> {
    if (this.#isDiscarded && this.#putBack === null) return Promise.resolve(false)
    this.#putBack ??= this.#putFilesBack()
    return this.#putBack
  }

  async #putFilesBack(): Promise<boolean> {
    const { workspace, directory, unfinished, id, serverId } = this.#app
    let isBack = false
    try {
      if (!this.#isKept) return false
      const tree = this.#kept.size > 0 ? treeIn(this.#staging) : null
      await putFilesBack(workspace, directory, [...this.#added], tree)
      const noted = unfinished.find(id)
      if (noted !== undefined && this.#isBuiltOver)
        unfinished.put(id, serverId, { ...noted, state: 'rebuild' })
      else unfinished.drop(id)
      isBack = true
    } finally {
      await this.#staging[Symbol.asyncDispose]()
      this.#app.onPutBack(isBack)
    }
    return true
  }

  /** Forgets the version before: another one came up, or that one runs again. */
  async discard(): Promise<void> {
    this.#isDiscarded = true
    this.#app.unfinished.drop(this.#app.id)
    await this.#staging[Symbol.asyncDispose]()
  }
}

/** A change of files that has not come up yet. It says what a start has to do if berth is killed meanwhile. */
export interface UnfinishedChange extends VersionBefore {
  /** Of the app, relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  /** Name of the staging directory with the files of before, or with those that replace them. */
  readonly staging: string
  /**
   * - `before`: the files of before are put back.
   * - `next`: they are too large to be kept, so the change of the files is completed.
   * - `rebuild`: they are back. Only packages and build are those of the other version.
   */
  readonly state: 'before' | 'next' | 'rebuild'
  /** Files that were not there before. */
  readonly added: readonly string[]
  /** Files that are removed. */
  readonly removed: readonly string[]
  /** Whether the version was installed or built, over the packages and the build of before. */
  readonly isBuiltOver: boolean
  /** Paths of the code after the change. */
  readonly nextPaths: readonly string[]
  /** The app's own directory after the change; missing if it is not recorded apart from the plan. */
  readonly nextAppDirectory?: string
}

/** Changes whose version has not come up yet. */
const unfinishedChanges = sqliteTable('unfinished_pushes', {
  /** Of the project, or of the server whose deployment it is. */
  appId: text('app_id').primaryKey(),
  serverId: text('server_id').notNull(),
  change: text('change', { mode: 'json' }).$type<UnfinishedChange>().notNull(),
})

/** A change that has not come up, as it is stored. */
type UnfinishedRow = typeof unfinishedChanges.$inferSelect

/** Notes the changes of files that have not come up yet, one for each app. */
export class UnfinishedChanges {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** Returns those of projects, or those of deployments. */
  list(of: 'projects' | 'deployments'): UnfinishedRow[] {
    const all = this.#queries.select().from(unfinishedChanges).all()
    return all.filter(({ appId, serverId }) => (appId === serverId) === (of === 'deployments'))
  }

  /** Returns the change of an app, or undefined. */
  find(appId: string): UnfinishedChange | undefined {
    const row = this.#queries.select().from(unfinishedChanges).where(eq(unfinishedChanges.appId, appId)).get()
    return row?.change
  }

  /** Notes a change, in place of an earlier one of the app. */
  put(appId: string, serverId: string, change: UnfinishedChange): void {
    this.#queries
      .insert(unfinishedChanges)
      .values({ appId, serverId, change })
      .onConflictDoUpdate({ target: unfinishedChanges.appId, set: { change } })
      .run()
  }

  /** Forgets the change of an app: it came up, or its files are back. */
  drop(appId: string): void {
    this.#queries.delete(unfinishedChanges).where(eq(unfinishedChanges.appId, appId)).run()
  }
}

/**
 * Makes the files those of one version that an earlier berth was changing when it ended, and says so in the app's log.
 *
 * @param act what the change was, as `push`
 * @returns whether the files are those of before, unless they could not be recovered, and what became of them, for a person
 */
export async function recoverChange(
  { servers, logger, hosting }: { servers: ServersService; logger: Logger; hosting: Hosting },
  { appId, serverId, change }: UnfinishedRow,
  act: 'push' | 'deploy',
): Promise<{ isBefore: boolean; text: string }> {
  const server = servers.records.find(serverId)
  if (server === undefined) return { isBefore: false, text: '' }
  const isBefore = change.state !== 'next'
  let text = isBefore
    ? `berth was ended before the ${act} came up. The files of the version before are back in place; ${act} again.`
    : `berth was ended amid the ${act}. Its files are all in place now: those before were too large to be kept.`
  try {
    await recoverFiles(servers.workspace(server), change)
  } catch (error) {
    logger.error('files that were being changed could not be recovered', { appId, error })
    text = `berth was ended amid the ${act}, and files of both versions are in place: ${messageOf(error)} ${act === 'push' ? 'Push' : 'Deploy'} again.`
  }
  const log = await hosting.openLog(appId)
  log.append('berth', text)
  await log.close()
  return { isBefore, text }
}

/** Does what the berth has not done that was killed. Does nothing that was done before. */
async function recoverFiles(workspace: Workspace, change: UnfinishedChange): Promise<void> {
  const { directory, state, added, removed } = change
  const staging = workspace.stagingNamed(change.staging)
  if (state === 'before') {
    await putFilesBack(workspace, directory, added, existsSync(treeIn(staging)) ? treeIn(staging) : null)
  } else if (state === 'next') {
    await removeFiles(workspace, directory, removed)
    if (existsSync(nextIn(staging))) await workspace.mergeIn(nextIn(staging), directory)
  }
  await staging[Symbol.asyncDispose]()
}

const treeIn = ({ path }: Staging): string => join(path, 'previous')

const nextIn = ({ path }: Staging): string => join(path, 'next')

async function putFilesBack(
  workspace: Workspace,
  directory: string,
  added: readonly string[],
  tree: string | null,
): Promise<void> {
  await removeFiles(workspace, directory, added)
  if (tree !== null) await workspace.mergeIn(tree, directory, { keepModes: true })
}

/** Describes what a directory has at these paths; nothing if there is no directory. */
export async function presentEntries(
  workspace: Workspace,
  directory: string,
  paths: readonly string[],
): Promise<ManifestEntry[]> {
  try {
    return await workspace.manifest(directory, paths)
  } catch (error) {
    if (error instanceof WorkspaceError && error.fault === 'missing') return []
    throw error
  }
}

/** Returns the path of an entry of a directory, which may be the workspace itself. */
const below = (directory: string, path: string): string => (directory === '' ? path : `${directory}/${path}`)

/** Removes files, and the directories that are empty then. */
async function removeFiles(workspace: Workspace, directory: string, paths: readonly string[]): Promise<void> {
  const parents = new Set<string>()
  for (const path of paths) {
    await workspace.remove(below(directory, path)).catch(ignoreMissing)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1))
      parents.add(path.slice(0, at))
  }
  // The innermost first.
  for (const parent of [...parents].sort((a, b) => b.length - a.length)) {
    const full = below(directory, parent)
    const entries = await workspace.entries(full).catch(() => null)
    if (entries?.length === 0) await workspace.remove(full).catch(ignoreMissing)
  }
}

function ignoreMissing(error: unknown): void {
  const isMissing =
    error instanceof WorkspaceError && (error.fault === 'missing' || error.fault === 'not_a_file')
  if (!isMissing) throw error
}
