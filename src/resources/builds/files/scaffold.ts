import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { TemplateFile } from '../../templates/files.ts'
import { compareFile, filesOf, type OwnFiles } from './own.ts'

/** What copying a template into a workspace does. */
export interface Scaffold {
  /** Files of the template that are copied; those of them that are there already are what they are to be. */
  readonly copies: readonly TemplateFile[]
  /** Paths of the template at which something else stands already: it stays. */
  readonly stays: readonly string[]
  /** Files that earlier builds copied from other templates, and nobody has changed. */
  readonly removes: readonly { readonly path: string; readonly template: string }[]
}

/** Decides what is copied and what is removed. Nothing is changed yet. */
export async function planScaffold(
  workspace: Workspace,
  catalog: TemplateCatalog,
  template: string,
  own: OwnFiles | null,
): Promise<Scaffold> {
  const files = [...(await filesOf(catalog, template)).values()]
  const occupied = new Occupancy(workspace)
  const copies: TemplateFile[] = []
  const stays: string[] = []
  for (const file of files) {
    const isOurs = own?.files.has(file.path) === true
    if (isOurs || !(await occupied.has(file.path))) copies.push(file)
    else stays.push(file.path)
  }
  const copied = new Set(copies.map(({ path }) => path))
  const removes = [...(own?.files ?? [])]
    .filter(([path, of]) => of !== template && !copied.has(path))
    .map(([path, of]) => ({ path, template: of }))
  return { copies, stays, removes }
}

/**
 * Removes and copies. Folders that become empty stay: to remove them could take along what somebody puts there at the
 * same moment.
 */
export async function scaffold(
  workspace: Workspace,
  catalog: TemplateCatalog,
  { copies, removes }: Scaffold,
): Promise<void> {
  for (const { path, template } of removes) {
    // Again: somebody may have changed it since the plan was made.
    const original = (await filesOf(catalog, template)).get(path)
    if ((await compareFile({ workspace }, path, original)) !== 'same') continue
    await workspace.remove(path)
  }
  for (const { path, bytes } of copies) await workspace.write(path, bytes)
}

/** What stands in a workspace, links that lead nowhere included. */
class Occupancy {
  readonly #workspace: Workspace
  readonly #folders = new Map<string, Promise<ReadonlySet<string>>>()

  constructor(workspace: Workspace) {
    this.#workspace = workspace
  }

  /** Whether anything stands at a path, or a file in the way to it. */
  async has(path: string): Promise<boolean> {
    const names = path.split('/')
    for (const [depth, name] of names.entries()) {
      const folder = names.slice(0, depth).join('/')
      const found = this.#folders.get(folder) ?? this.#names(folder)
      this.#folders.set(folder, found)
      if (!(await found).has(name)) return false
      const isFolder = await this.#isFolder(names.slice(0, depth + 1).join('/'))
      if (!isFolder) return true
    }
    return true
  }

  async #names(folder: string): Promise<ReadonlySet<string>> {
    const entries = await this.#workspace.entries(folder === '' ? '/workspace/' : folder)
    return new Set(entries.map(({ name }) => name))
  }

  async #isFolder(path: string): Promise<boolean> {
    try {
      return (await this.#workspace.stat(path))?.kind === 'directory'
    } catch (error) {
      // It leads out of the workspace.
      if (error instanceof WorkspaceError) return false
      throw error
    }
  }
}
