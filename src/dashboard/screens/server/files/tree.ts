/** A file or a folder, as a row of a tree. */
export interface TreeRow {
  /** Relative to the workspace. */
  readonly path: string
  readonly name: string
  /** 0 for what lies in the workspace itself. */
  readonly depth: number
  readonly isFolder: boolean
}

/** A folder and what lies in it. */
interface Folder {
  readonly folders: Map<string, Folder>
  readonly files: string[]
}

/**
 * Returns the rows of a tree in order, folders first: those of the folders that are open.
 *
 * @param paths paths of files, relative to the workspace
 * @param isOpen tells whether a folder, given by its path, is open
 */
export function treeRows(paths: readonly string[], isOpen: (path: string) => boolean): TreeRow[] {
  const root: Folder = { folders: new Map(), files: [] }
  for (const path of paths) {
    const names = path.split('/')
    const file = names.pop() ?? ''
    const folder = names.reduce((at, name) => {
      const inner: Folder = at.folders.get(name) ?? { folders: new Map(), files: [] }
      at.folders.set(name, inner)
      return inner
    }, root)
    folder.files.push(file)
  }
  return rowsOf(root, '', 0, isOpen)
}

function rowsOf(folder: Folder, above: string, depth: number, isOpen: (path: string) => boolean): TreeRow[] {
  const folders = [...folder.folders].sort(([a], [b]) => a.localeCompare(b))
  return [
    ...folders.flatMap(([name, inner]) => {
      const path = `${above}${name}`
      const row = { path, name, depth, isFolder: true }
      return isOpen(path) ? [row, ...rowsOf(inner, `${path}/`, depth + 1, isOpen)] : [row]
    }),
    ...folder.files
      .toSorted((a, b) => a.localeCompare(b))
      .map((name) => ({ path: `${above}${name}`, name, depth, isFolder: false })),
  ]
}
