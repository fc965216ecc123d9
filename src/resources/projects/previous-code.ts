import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ManifestEntry, Staging, Workspace } from '../../compute/workspace.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import type { AppPlan } from '../../hosting/app-runtime/plan.ts'
import type { UnfinishedChange, UnfinishedPushes } from './unfinished-pushes.ts'

/** Largest size of the files that are kept, in bytes. */
const MAX_KEPT_BYTES = 128 * 1024 * 1024

/** What a project or a deployment was before a push. */
interface PreviousRecord {
  readonly plan: AppPlan | null
  /** Paths of the code that came from outside. */
  readonly paths: readonly string[]
  /** Whether its app responded. */
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
  /** Where the change is recorded until it has come up. */
  readonly unfinished: UnfinishedPushes
}

/** A change of files. */
export interface CodeChange {
  /** Directory with the files that are placed, in a staging directory; null if there are none. */
  readonly tree: string | null
  /** Paths of these. */
  readonly written: readonly string[]
  /** Paths that are removed, whether they are there or not. */
  readonly removed: readonly string[]
  /** Paths of the code after the change. */
  readonly paths: readonly string[]
  /** The app's own directory after the change, if that is recorded apart from the plan. */
  readonly appDirectory?: string
}

/**
 * The code of a version while pushes try to replace it: copies of the files that they replaced or removed, and
 * the paths that they added. Several pushes may add to it, until one of them comes up. If berth is killed before, the next start
 * puts it back (`recover`). Code that is too large to be kept is lost once it is replaced; then the start completes the change
 * instead, so that the files are those of one version in any case.
 */
export class PreviousCode {
  readonly record: PreviousRecord
  readonly #app: ChangedApp
  readonly #staging: Staging
  readonly #kept = new Set<string>()
  readonly #added = new Set<string>()
  #bytes = 0
  #isKept = true
  #isBuiltOver: boolean

  /** Begins without a file. */
  static async begin(app: ChangedApp, record: PreviousRecord): Promise<PreviousCode> {
    return new PreviousCode(app, record, await app.workspace.staging({ isState: true }))
  }

  private constructor(app: ChangedApp, record: PreviousRecord, staging: Staging) {
    this.#app = app
    this.record = record
    this.#staging = staging
    // A start may have put the files of before back, and nothing has built them since.
    this.#isBuiltOver = app.unfinished.find(app.id)?.isBuiltOver ?? false
  }

  /** Whether a version that was to replace it was installed or built, over its packages and its build. */
  get isBuiltOver(): boolean {
    return this.#isBuiltOver
  }

  /** Notes that a version that is to replace it is installed or built now. */
  markBuiltOver(): void {
    const { unfinished, id, serverId } = this.#app
    this.#isBuiltOver = true
    const change = unfinished.find(id)
    if (change !== undefined) unfinished.put(id, serverId, { ...change, isBuiltOver: true })
  }

  /**
   * Changes the files, and keeps those of before.
   *
   * @param kept those that are removed and can be made again by no install
   * @returns whether they could be kept; false if there is too much
   * @throws the error of a path that cannot be written. Put the files back then
   */
  async replace(change: CodeChange, kept: readonly string[] = change.removed): Promise<boolean> {
    const { workspace, directory, unfinished, id, serverId } = this.#app
    const { written, removed, paths } = change
    this.#isKept &&= await this.#keep([...written, ...kept])
    const tree = this.#isKept ? change.tree : await this.#keepNext(change.tree)
    unfinished.put(id, serverId, {
      ...{ directory, staging: basename(this.#staging.path), state: this.#isKept ? 'before' : 'next' },
      ...{ added: this.#isKept ? [...this.#added] : [], removed: this.#isKept ? [] : removed },
      ...{ isBuiltOver: this.#isBuiltOver, nextPaths: this.#isKept ? [] : paths, ...this.record },
      ...(change.appDirectory === undefined ? {} : { nextAppDirectory: change.appDirectory }),
    })
    if (!this.#isKept) await rm(this.#tree, { recursive: true, force: true })
    await removeFiles(workspace, directory, removed)
    if (tree !== null) await workspace.mergeIn(tree, directory)
    return this.#isKept
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
      const copy = join(this.#tree, entry.path)
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
   * start still knows, until `discard`.
   *
   * @returns whether they were kept
   */
  async putBack(): Promise<boolean> {
    const { workspace, directory, unfinished, id, serverId } = this.#app
    try {
      if (!this.#isKept) return false
      await putFilesBack(workspace, directory, [...this.#added], this.#kept.size > 0 ? this.#tree : null)
      const change = unfinished.find(id)
      if (change !== undefined && this.#isBuiltOver)
        unfinished.put(id, serverId, { ...change, state: 'rebuild' })
      else unfinished.drop(id)
      return true
    } finally {
      await this.#staging[Symbol.asyncDispose]()
    }
  }

  /** Forgets it: another version came up, or this one runs again. */
  async discard(): Promise<void> {
    this.#app.unfinished.drop(this.#app.id)
    await this.#staging[Symbol.asyncDispose]()
  }

  get #tree(): string {
    return treeIn(this.#staging)
  }
}

/**
 * Does with the files of an app what the berth did not come to that was killed. They are those of one version then. Does nothing
 * that was done before.
 */
export async function recoverFiles(workspace: Workspace, change: UnfinishedChange): Promise<void> {
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
