import type { Workspace } from '../../compute/workspace.ts'
import { type ChangedApp, PreviousCode } from '../projects/previous-code.ts'
import type { DeploymentRow } from './table.ts'

/** Matches the paths of packages that an install makes. */
const PACKAGE = /(?:^|\/)node_modules\//

/** The files of a workspace that a push replaces and removes. */
interface PushedChange {
  /** Paths that the push describes. All others are removed if `isClean`. */
  readonly wanted: ReadonlySet<string>
  readonly isClean: boolean
  /** Paths of files and links that are written. */
  readonly written: readonly string[]
  /** Directory with these, absolute; null if there are none. */
  readonly tree: string | null
  /** Paths that are to be removed, whether they are there or not. */
  readonly removed: readonly string[]
}

/** A change of the files of a workspace that can be undone until it is kept. */
export class FileChange implements AsyncDisposable {
  /** Number of files and links that were removed; 0 before `apply`. */
  removed = 0
  /** Whether the files of the version before are back. */
  isPutBack = false
  readonly #workspace: Workspace
  readonly #app: ChangedApp
  readonly #change: PushedChange
  /** Reports whether a path of the workspace is in a project. */
  readonly #isInProject: (path: string) => boolean
  #isBuiltOver = false
  #previous: PreviousCode | null = null

  constructor(app: ChangedApp, change: PushedChange, isInProject: (path: string) => boolean) {
    this.#app = app
    this.#workspace = app.workspace
    this.#change = change
    this.#isInProject = isInProject
  }

  /** Whether the version before has to be installed and built again: its packages or its build may be others. */
  get isBuiltOver(): boolean {
    return this.#isBuiltOver
  }

  /** Notes that packages and build are those of the new version from now on. */
  markBuiltOver(): void {
    this.#isBuiltOver = true
    this.#previous?.markBuiltOver()
  }

  /**
   * Changes the files.
   *
   * @param before the version to which the files belong; null if they need not be kept
   * @throws WorkspaceError for a path that cannot be written. No file is changed then
   */
  async apply(before: DeploymentRow | null): Promise<void> {
    const { written, tree } = this.#change
    const removed = await this.#present()
    const isMade = (path: string): boolean => before?.plan.install != null && PACKAGE.test(path)
    const kept = removed.filter((path) => !isMade(path))
    const record = { plan: before?.plan ?? null, paths: [], wasUp: before !== null }
    const previous = await PreviousCode.begin(this.#app, record)
    this.#previous = previous
    this.#isBuiltOver = previous.isBuiltOver
    // Packages are too many to be kept, and can be installed again.
    if (kept.length < removed.length) this.markBuiltOver()
    try {
      const isKept = await previous.replace({ tree, written, removed, paths: [] }, kept)
      if (!isKept || before === null) await this[Symbol.asyncDispose]()
    } catch (error) {
      await this.putBack()
      await this[Symbol.asyncDispose]()
      throw error
    }
    this.removed = removed.length
  }

  /** Puts the files of the version before back, if they were kept. Later calls do nothing. */
  async putBack(): Promise<void> {
    const previous = this.#previous
    if (previous === null || this.isPutBack) return
    this.isPutBack = await previous.putBack()
  }

  /** Forgets the version before. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#previous?.discard()
    this.#previous = null
  }

  /** Returns the paths to remove that are there. */
  async #present(): Promise<string[]> {
    const { wanted, isClean, removed } = this.#change
    if (!isClean) return (await this.#workspace.manifest('', removed)).map(({ path }) => path)
    const [files, entries] = await Promise.all([
      this.#workspace.list({ all: true }),
      this.#workspace.manifest('', null),
    ])
    const links = entries.filter(({ kind }) => kind === 'link').map(({ path }) => path)
    return [...new Set([...files, ...links])].filter((path) => !wanted.has(path) && !this.#isInProject(path))
  }
}
