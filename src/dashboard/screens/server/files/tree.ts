/** A file or a directory, as a row of a tree. */
export interface TreeRow {
  /** Relative to the workspace. */
  readonly path: string
  readonly name: string
  /** 0 for what lies in the workspace itself. */
  readonly depth: number
  readonly isDirectory: boolean
}

/** A directory and what lies in it. */
interface Directory {
  readonly directories: Map<string, Directory>
  readonly files: string[]
}

/**
 * Returns the rows of a tree in order, directories first: those of the directories that are open.
 *
 * @param paths paths of files, relative to the workspace
 * @param isOpen tells whether a directory, given by its path, is open
 */
export function treeRows(paths: readonly string[], isOpen: (path: string) => boolean): TreeRow[] {
  const root: Directory = { directories: new Map(), files: [] }
  for (const path of paths) {
    const names = path.split('/')
    const file = names.pop() ?? ''
    const directory = names.reduce((at, name) => {
      const inner: Directory = at.directories.get(name) ?? { directories: new Map(), files: [] }
      at.directories.set(name, inner)
      return inner
    }, root)
    directory.files.push(file)
  }
  return rowsOf(root, '', 0, isOpen)
}

function rowsOf(
  directory: Directory,
  above: string,
  depth: number,
  isOpen: (path: string) => boolean,
): TreeRow[] {
  const directories = [...directory.directories].sort(([a], [b]) => a.localeCompare(b))
  return [
    ...directories.flatMap(([name, inner]) => {
      const path = `${above}${name}`
      const row = { path, name, depth, isDirectory: true }
      return isOpen(path) ? [row, ...rowsOf(inner, `${path}/`, depth + 1, isOpen)] : [row]
    }),
    ...directory.files
      .toSorted((a, b) => a.localeCompare(b))
      .map((name) => ({ path: `${above}${name}`, name, depth, isDirectory: false })),
  ]
}
