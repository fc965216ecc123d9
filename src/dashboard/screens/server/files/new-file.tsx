import { useState } from 'preact/hooks'
import { Button } from '../../../components/button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { useDashboard } from '../../../dashboard.ts'

/** Properties of the question for a new file's path. */
interface NewFileProps {
  /** The folder to begin with; empty for the workspace. */
  folder: string
  onCreate: (path: string) => Promise<void>
  onClose: () => void
}

/** Asks for the path of a new file. */
export function NewFile({ folder, onCreate, onClose }: NewFileProps) {
  const { notices } = useDashboard()
  const [path, setPath] = useState(folder === '' ? '' : `${folder}/`)
  return (
    <Dialog title="New file" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(() => onCreate(path)).then((ok) => ok && onClose())
        }}
      >
        <label class="field">
          <span>Path, from the workspace on</span>
          <input
            type="text"
            required
            value={path}
            placeholder="notes/hello.txt"
            onInput={({ currentTarget }) => setPath(currentTarget.value)}
          />
        </label>
        <div class="actions">
          <Button type="submit" look="primary">
            Create
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
