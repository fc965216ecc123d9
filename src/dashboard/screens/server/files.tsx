import { useEffect, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import { openTerminal } from '../../components/begin.ts'
import { Button, Icon } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { Empty, Failure, Loading } from '../../components/page.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'
import { FileView, uploadFile, writeText } from './file-view.tsx'

/** Properties of the files. */
interface FilesProps {
  server: Pick<Server, 'id'>
  /** The directory that is shown, such as that of a project; by default the whole workspace. */
  root?: string
}

/** The files of a server: a tree, and the one that the address names in an editor. Files that are dropped are uploaded. */
export function FilesView({ server, root = '' }: FilesProps) {
  const dashboard = useDashboard()
  const { api, router, notices, fileWork } = dashboard
  const serverId = server.id
  const [paths, setPaths] = useState<readonly string[] | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const before = fileWork.place(serverId, root)
  const [open, setOpen] = useState<ReadonlySet<string>>(before?.openFolders ?? new Set())
  const [isNaming, setNaming] = useState(false)
  const selected = router.query.value.get('file') ?? ''
  const load = async (): Promise<void> => {
    try {
      const listed = await api.call('files.read', { params: { serverId } })
      const all = 'files' in listed ? listed.files : []
      setPaths(
        root === ''
          ? all
          : all.flatMap((path) => (path.startsWith(`${root}/`) ? [path.slice(root.length + 1)] : [])),
      )
      setFailure(null)
    } catch (error) {
      setFailure(new Error(messageOf(error)))
    }
  }
  useEffect(() => void load(), [serverId, root])
  useEffect(() => {
    // Back from another tab: opens the same file again.
    if (before && selected === '' && !router.query.peek().has('folder')) router.setQuery('file', before.file)
  }, [serverId, root])
  useEffect(
    () => fileWork.setPlace(serverId, root, { file: selected, openFolders: open }),
    [serverId, root, selected, open],
  )
  // The directory that is worked in: that of the open file, else the one that the address names.
  const given = router.query.value.get('folder') ?? ''
  const folder = selected === '' ? given : selected.slice(0, Math.max(0, selected.lastIndexOf('/')))
  const inServer = (path: string): string => [root, path].filter(Boolean).join('/')
  const drop = async (files: FileList | null | undefined): Promise<void> => {
    const dropped = [...(files ?? [])]
    await notices.attempt(async () => {
      for (const file of dropped)
        await uploadFile(api, serverId, inServer(folder === '' ? file.name : `${folder}/${file.name}`), file)
    })
    await load()
  }
  const terminalHere = async (): Promise<void> => {
    const terminal = await openTerminal(dashboard, serverId, inServer(folder))
    router.go(`/dashboard/servers/${serverId}?terminal=${terminal.id}`)
  }
  if (failure) return <Failure error={failure} retry={load} />
  if (paths === null) return <Loading />
  const isShown = (path: string): boolean =>
    open.has(path) || [selected, `${given}/`].some((one) => one.startsWith(`${path}/`))
  const toggle = (path: string): void => {
    const next = new Set(open)
    if (!next.delete(path)) next.add(path)
    setOpen(next)
  }
  return (
    <section
      class="files"
      aria-label={root === '' ? 'Files of the server' : 'Files of the project'}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void drop(event.dataTransfer?.files)
      }}
    >
      <div class="files-side">
        <div class="actions toolbar">
          <Button look="quiet" icon="plus" label="New file" onClick={() => setNaming(true)} />
          <label class="button quiet square" title="Upload files">
            <Icon name="upload" />
            <input
              type="file"
              multiple
              class="visually-hidden"
              aria-label="Upload files"
              onChange={({ currentTarget }) => void drop(currentTarget.files)}
            />
          </label>
          <Button look="quiet" icon="terminal" label="Open a terminal here" onClick={terminalHere} />
          <Button look="quiet" icon="restart" label="Load the list again" onClick={load} />
        </div>
        {paths.length === 0 ? (
          <p class="quiet toolbar">No files yet. Drop some here.</p>
        ) : (
          <VirtualList
            items={treeRows(paths, isShown)}
            rowHeight={28}
            keyOf={({ path, isDirectory }) => (isDirectory ? `${path}/` : path)}
            label="Files"
          >
            {(row) => (
              <Row
                row={row}
                isOpen={isShown(row.path)}
                isSelected={row.path === selected}
                isEdited={fileWork.edited.value.has(`${serverId}/${inServer(row.path)}`)}
                onClick={() => (row.isDirectory ? toggle(row.path) : router.setQuery('file', row.path))}
              />
            )}
          </VirtualList>
        )}
      </div>
      {selected === '' ? (
        <Empty title="No file is open">
          <p>Choose one, or drop files here to uploadFile them.</p>
        </Empty>
      ) : (
        <FileView
          key={`${serverId}/${selected}`}
          serverId={serverId}
          path={inServer(selected)}
          onDeleted={async () => {
            router.setQuery('file', '')
            await load()
          }}
        />
      )}
      {isNaming && (
        <NewFile
          folder={folder}
          onClose={() => setNaming(false)}
          onCreate={async (path) => {
            await writeText(api, serverId, inServer(path), '')
            await load()
            router.setQuery('file', path)
          }}
        />
      )}
    </section>
  )
}

/** Properties of a row of the tree. */
interface RowProps {
  row: TreeRow
  isOpen: boolean
  isSelected: boolean
  /** Whether it has changes that are not saved. */
  isEdited: boolean
  onClick: () => void
}

const Row = ({ row, isOpen, isSelected, isEdited, onClick }: RowProps) => (
  <button
    type="button"
    class={`file-row${isSelected ? ' current' : ''}`}
    style={{ paddingLeft: `${row.depth * 0.9 + 0.75}rem` }}
    aria-expanded={row.isDirectory ? isOpen : undefined}
    aria-current={isSelected ? 'true' : undefined}
    title={row.path}
    onClick={onClick}
  >
    <Icon name={row.isDirectory ? (isOpen ? 'down' : 'right') : 'file'} />
    <bdi>{row.name}</bdi>
    {isEdited && <span class="quiet">edited</span>}
  </button>
)

/** Properties of the question for a new file's path. */
interface NewFileProps {
  /** The directory to begin with; empty for the workspace. */
  folder: string
  onCreate: (path: string) => Promise<void>
  onClose: () => void
}

/** Asks for the path of a new file. */
function NewFile({ folder, onCreate, onClose }: NewFileProps) {
  const [path, setPath] = useState(folder === '' ? '' : `${folder}/`)
  return (
    <FormDialog title="New file" action="Create" onSubmit={() => onCreate(path)} onClose={onClose}>
      <TextField
        name="path"
        label="Path, from the workspace on"
        value={path}
        onValue={setPath}
        isRequired
        placeholder="notes/hello.txt"
      />
    </FormDialog>
  )
}

/** A file or a directory, as a row of a tree. */
interface TreeRow {
  /** Relative to the workspace. */
  readonly path: string
  readonly name: string
  /** 0 for entries of the workspace itself. */
  readonly depth: number
  readonly isDirectory: boolean
}

/** A directory and its entries. */
interface Directory {
  readonly directories: Map<string, Directory>
  readonly files: string[]
}

/**
 * Returns the rows of a tree in order, directories first: those of the directories that are open.
 *
 * @param paths paths of files, relative to the workspace
 * @param isOpen reports whether a directory, given by its path, is open
 */
function treeRows(paths: readonly string[], isOpen: (path: string) => boolean): TreeRow[] {
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
