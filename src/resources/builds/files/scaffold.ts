import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { TemplateFile } from '../../templates/files.ts'
import { type CopiedFiles, compareFile, loadTemplateFiles } from './copied.ts'

/** The changes that copying a template makes to a workspace. */
export interface ScaffoldPlan {
  /** Files to copy. Existing ones among them are unchanged copies from an earlier build. */
  readonly copies: readonly TemplateFile[]
  /** Paths of the template that the user's files occupy. They are not copied. */
  readonly kept: readonly string[]
  /** Unchanged files of other templates, to remove. */
  readonly removals: readonly { readonly path: string; readonly template: string }[]
}

/** Plans which files to copy and to remove. Changes nothing. */
export async function planScaffold(
  workspace: Workspace,
  catalog: TemplateCatalog,
  template: string,
  copied: CopiedFiles | null,
): Promise<ScaffoldPlan> {
  const files = [...(await loadTemplateFiles(catalog, template)).values()]
  const occupied = new WorkspaceEntries(workspace)
  const copies: TemplateFile[] = []
  const kept: string[] = []
  for (const file of files) {
    const isCopied = copied?.files.has(file.path) === true
    if (isCopied || !(await occupied.has(file.path))) copies.push(file)
    else kept.push(file.path)
  }
  const copiedPaths = new Set(copies.map(({ path }) => path))
  const removals = [...(copied?.files ?? [])]
    .filter(([path, of]) => of !== template && !copiedPaths.has(path))
    .map(([path, of]) => ({ path, template: of }))
  return { copies, kept, removals }
}

/**
 * Applies a plan. Keeps directories that become empty: removing them could remove a file that is created at the same
 * moment.
 */
export async function applyScaffold(
  workspace: Workspace,
  catalog: TemplateCatalog,
  { copies, removals }: ScaffoldPlan,
): Promise<void> {
  for (const { path, template } of removals) {
    // Compares again: it may have changed since the plan was made.
    const original = (await loadTemplateFiles(catalog, template)).get(path)
    if ((await compareFile({ workspace }, path, original)) !== 'same') continue
    await workspace.remove(path)
  }
  for (const { path, bytes } of copies) await workspace.write(path, bytes)
}

/** Looks up paths in a workspace. Counts dangling links as existing. */
class WorkspaceEntries {
  readonly #workspace: Workspace
  readonly #directories = new Map<string, Promise<ReadonlySet<string>>>()

  constructor(workspace: Workspace) {
    this.#workspace = workspace
  }

  /** Reports whether a path exists, or one of its parents is not a directory. */
  async has(path: string): Promise<boolean> {
    const names = path.split('/')
    for (const [depth, name] of names.entries()) {
      const directory = names.slice(0, depth).join('/')
      const found = this.#directories.get(directory) ?? this.#listNames(directory)
      this.#directories.set(directory, found)
      if (!(await found).has(name)) return false
      const isDirectory = await this.#isDirectory(names.slice(0, depth + 1).join('/'))
      if (!isDirectory) return true
    }
    return true
  }

  async #listNames(directory: string): Promise<ReadonlySet<string>> {
    const entries = await this.#workspace.entries(directory === '' ? '/workspace/' : directory)
    return new Set(entries.map(({ name }) => name))
  }

  async #isDirectory(path: string): Promise<boolean> {
    try {
      return (await this.#workspace.stat(path))?.kind === 'directory'
    } catch (error) {
      // It is a link out of the workspace.
      if (error instanceof WorkspaceError) return false
      throw error
    }
  }
}
