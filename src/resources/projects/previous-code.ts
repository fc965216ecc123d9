import { chmod, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Staging, Workspace } from '../../compute/workspace.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import type { AppPlan } from '../../hosting/app-runtime/plan.ts'

/** Largest size of the files that are kept, in bytes. */
const MAX_KEPT_BYTES = 128 * 1024 * 1024

/** What a project or a deployment was before a push. */
export interface PreviousRecord {
  readonly plan: AppPlan | null
  /** Paths of the code that came from outside. */
  readonly paths: readonly string[]
}

/**
 * The code of a version that runs, while pushes try to replace it: copies of the files that they replaced or removed, and
 * the paths that they added. Several pushes may add to it, until one of them comes up.
 */
export class PreviousCode {
  readonly record: PreviousRecord
  /** Whether a version that was to replace it was built, over its build. */
  isBuiltOver = false
  readonly #workspace: Workspace
  readonly #directory: string
  readonly #staging: Staging
  readonly #kept = new Set<string>()
  readonly #added = new Set<string>()
  #bytes = 0

  /**
   * Begins without a file.
   *
   * @param directory of the app, relative to the workspace; empty for the workspace itself
   */
  static async begin(workspace: Workspace, directory: string, record: PreviousRecord): Promise<PreviousCode> {
    return new PreviousCode(workspace, directory, record, await workspace.staging())
  }

  private constructor(workspace: Workspace, directory: string, record: PreviousRecord, staging: Staging) {
    this.#workspace = workspace
    this.#directory = directory
    this.record = record
    this.#staging = staging
  }

  /**
   * Copies the files at these paths, which are about to change. Paths that were kept before are left alone.
   *
   * @returns whether all could be kept; false if there is too much
   */
  async keep(paths: readonly string[]): Promise<boolean> {
    const fresh = paths.filter((path) => !this.#kept.has(path) && !this.#added.has(path))
    const present = await this.#workspace.manifest(this.#directory, fresh)
    this.#bytes += present.reduce((sum, entry) => sum + (entry.kind === 'file' ? entry.size : 0), 0)
    if (this.#bytes > MAX_KEPT_BYTES) return false
    for (const entry of present) {
      const copy = join(this.#tree, entry.path)
      await mkdir(dirname(copy), { recursive: true })
      if (entry.kind === 'link') await symlink(entry.target, copy)
      else {
        using file = await this.#workspace.open(below(this.#directory, entry.path))
        // It may have grown since it was described.
        this.#bytes += Math.max(0, file.size - entry.size)
        if (this.#bytes > MAX_KEPT_BYTES) return false
        await Bun.write(copy, await file.read(0, file.size))
        await chmod(copy, file.mode)
      }
      this.#kept.add(entry.path)
    }
    for (const path of fresh) if (!this.#kept.has(path)) this.#added.add(path)
    return true
  }

  /** Puts the files back, and removes those that were added. What the app has made meanwhile stays. */
  async putBack(): Promise<void> {
    await removeFiles(this.#workspace, this.#directory, [...this.#added])
    if (this.#kept.size > 0) await this.#workspace.mergeIn(this.#tree, this.#directory, { keepModes: true })
  }

  /** Removes the copies. */
  async discard(): Promise<void> {
    await this.#staging[Symbol.asyncDispose]()
  }

  get #tree(): string {
    return join(this.#staging.path, 'previous')
  }
}

/** Returns the path of an entry of a directory, which may be the workspace itself. */
const below = (directory: string, path: string): string => (directory === '' ? path : `${directory}/${path}`)

/** Removes files, and the directories that are empty then. */
export async function removeFiles(
  workspace: Workspace,
  directory: string,
  paths: readonly string[],
): Promise<void> {
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
