import { useEffect, useState } from 'preact/hooks'
import { messageOf } from '../../../api/failure.ts'
import { Button } from '../../../components/button.tsx'
import { formatBytes } from '../../../components/bytes.ts'
import { Confirm } from '../../../components/dialog.tsx'
import { LazyEditor } from '../../../components/editor/lazy-editor.tsx'
import { Empty } from '../../../components/empty.tsx'
import { Failure, Loading } from '../../../components/loaded.tsx'
import { useDashboard } from '../../../dashboard.ts'
import { download, type FileContent, MAX_EDITED, readFile, writeText } from './content.ts'

/** Properties of an open file. */
interface FileViewProps {
  serverId: string
  path: string
  onDeleted: () => Promise<void>
}

/** An open file: a text in an editor, anything else to download. */
export function FileView({ serverId, path, onDeleted }: FileViewProps) {
  const { api, notices } = useDashboard()
  const [content, setContent] = useState<FileContent | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const [draft, setDraft] = useState<string | null>(null)
  const [isDeleting, setDeleting] = useState(false)
  useEffect(() => {
    readFile(api, serverId, path).then(setContent, (error) => setFailure(new Error(messageOf(error))))
  }, [api, serverId, path])
  useEffect(() => {
    if (draft === null) return
    const warn = (event: Event): void => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [draft])
  const save = async (): Promise<void> => {
    if (draft === null) return
    await writeText(api, serverId, path, draft)
    setContent({ kind: 'text', text: draft })
    setDraft(null)
  }
  return (
    <div class="file-view">
      <div class="actions toolbar">
        <code class="file-path">{path}</code>
        {draft !== null && <span class="quiet">edited</span>}
        <Button look="primary" disabled={draft === null} onClick={save}>
          Save
        </Button>
        <Button
          look="quiet"
          icon="download"
          label="Download"
          disabled={content === null}
          onClick={() => content && download(path, content)}
        />
        <Button look="quiet" icon="trash" label="Delete the file" onClick={() => setDeleting(true)} />
      </div>
      {failure && <Failure error={failure} />}
      {!failure && content === null && <Loading />}
      {content && (
        <Content
          path={path}
          content={content}
          onChange={setDraft}
          onSave={() => void notices.attempt(save)}
        />
      )}
      {isDeleting && (
        <Confirm
          title={`Delete ${path}?`}
          action="Delete the file"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('files.delete', { params: { serverId }, query: { path } })
            await onDeleted()
          }}
        >
          <p>It cannot be brought back.</p>
        </Confirm>
      )}
    </div>
  )
}

/** Properties of a file's content. */
interface ContentProps {
  path: string
  content: FileContent
  onChange: (text: string) => void
  onSave: () => void
}

function Content({ path, content, onChange, onSave }: ContentProps) {
  if (content.kind === 'bytes')
    return (
      <Empty title="No text">
        <p>{formatBytes(content.bytes.length)} that are no text. Download it to see what it is.</p>
      </Empty>
    )
  if (content.text.length > MAX_EDITED)
    return (
      <Empty title="Too long to edit here">
        <p>{formatBytes(content.text.length)}. Download it, or open a terminal.</p>
      </Empty>
    )
  return <LazyEditor path={path} text={content.text} onChange={onChange} onSave={onSave} />
}
