import { useState } from 'preact/hooks'
import { FormDialog } from '../../../components/dialog.tsx'
import { TextField } from '../../../components/field.tsx'

/** Properties of the question for a new file's path. */
interface NewFileProps {
  /** The directory to begin with; empty for the workspace. */
  folder: string
  onCreate: (path: string) => Promise<void>
  onClose: () => void
}

/** Asks for the path of a new file. */
export function NewFile({ folder, onCreate, onClose }: NewFileProps) {
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
