import { useEffect, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import type { ApiClient } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { LazyEditor } from '../../components/lazy-editor.tsx'
import { Empty, Failure, Loading } from '../../components/page.tsx'
import { bytesText } from '../../components/text.ts'
import { useDashboard } from '../../dashboard.ts'

/** Properties of an open file. */
interface FileViewProps {
  serverId: string
  path: string
  onDeleted: () => Promise<void>
}

/** An open file: a text in an editor, anything else to download. */
export function FileView({ serverId, path, onDeleted }: FileViewProps) {
  const { api, notices, fileWork } = useDashboard()
  const [content, setContent] = useState<FileContent | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const [draft, setDraft] = useState(fileWork.draft(serverId, path))
  const [asked, setAsked] = useState<'delete' | 'discard' | null>(null)
  const [isSaved, setSaved] = useState(false)
  /** Counts the drafts that were discarded: each opens another editor. */
  const [discarded, setDiscarded] = useState(0)
  useEffect(() => {
    readFile(api, serverId, path).then(setContent, (error) => setFailure(new Error(messageOf(error))))
  }, [api, serverId, path])
  const text = content?.kind === 'text' ? content.text : null
  const isOutdated = draft !== null && text !== null && draft.original !== text
  const keep = (next: string | null): void => {
    const kept = next === null || text === null || next === text ? null : { original: text, text: next }
    // What the file was when the editing began, also after the file has changed.
    const value = kept && draft ? { ...kept, original: draft.original } : kept
    fileWork.setDraft(serverId, path, value)
    setDraft(value)
  }
  const save = async (): Promise<void> => {
    if (draft === null) return
    await writeText(api, serverId, path, draft.text)
    setSaved(true)
    setContent({ kind: 'text', text: draft.text })
    keep(null)
  }
  return (
    <div class="file-view">
      <div class="actions toolbar">
        <code class="file-path">{path}</code>
        {draft === null && isSaved && (
          <Saved serverId={serverId} path={path} onRestarted={() => setSaved(false)} />
        )}
        {draft !== null && (
          <span class="quiet">{isOutdated ? 'edited, and changed on the server since' : 'edited'}</span>
        )}
        {draft !== null && (
          <Button look="quiet" onClick={() => setAsked('discard')}>
            Discard
          </Button>
        )}
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
        <Button look="quiet" icon="trash" label="Delete the file" onClick={() => setAsked('delete')} />
      </div>
      {failure && <Failure error={failure} />}
      {!failure && content === null && <Loading />}
      {content && (
        <Content
          key={discarded}
          path={path}
          content={content}
          draft={draft?.text ?? null}
          onChange={keep}
          onSave={() => void notices.attempt(save)}
        />
      )}
      {asked === 'discard' && (
        <Confirm
          title={`Discard the changes of ${path}?`}
          action="Discard"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            keep(null)
            setDiscarded(discarded + 1)
          }}
        >
          <p>The editor shows the file as it is on the server.</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${path}?`}
          action="Delete the file"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            await api.call('files.delete', { params: { serverId }, query: { path } })
            keep(null)
            await onDeleted()
          }}
        >
          <p>It cannot be brought back.</p>
        </Confirm>
      )}
    </div>
  )
}

/** Says that a file is saved. If it is an app's, which runs the code of before, it offers to restart that. */
function Saved({ serverId, path, onRestarted }: { serverId: string; path: string; onRestarted: () => void }) {
  const { api, store, notices } = useDashboard()
  const project = store.projects
    .open()
    .list.value.find(({ server_id: id, slug }) => id === serverId && path.startsWith(`projects/${slug}/`))
  // Of files that berth itself serves, everybody gets the new ones.
  const isOfFiles = (project?.app?.serves ?? null) !== null
  const restart = async (projectId: string, name: string): Promise<void> => {
    await api.call('projects.restart', { params: { projectId } })
    notices.done(`${name} is restarted.`, { label: 'Show it', href: `/dashboard/projects/${projectId}` })
    onRestarted()
  }
  return (
    <>
      <span class="quiet" role="status">
        Saved
      </span>
      {project?.init_phase === 'ready' && !isOfFiles && (
        <Button icon="restart" onClick={() => restart(project.id, project.name)}>
          <span>
            Restart <bdi>{project.name}</bdi>
          </span>
        </Button>
      )}
    </>
  )
}

/** Properties of a file's content. */
interface ContentProps {
  path: string
  content: FileContent
  /** What was edited before; null if nothing was. */
  draft: string | null
  onChange: (text: string) => void
  onSave: () => void
}

function Content({ path, content, draft, onChange, onSave }: ContentProps) {
  if (content.kind === 'bytes')
    return (
      <Empty title="No text">
        <p>{bytesText(content.bytes.length)} that are no text. Download it to see what it is.</p>
      </Empty>
    )
  if (content.text.length > MAX_EDITED)
    return (
      <Empty title="Too long to edit here">
        <p>{bytesText(content.text.length)}. Download it, or open a terminal.</p>
      </Empty>
    )
  return <LazyEditor path={path} text={draft ?? content.text} onChange={onChange} onSave={onSave} />
}

/** The content of a file: a text, or bytes that are not text. */
type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer> }

/** Characters of a text above which the editor would be slow. @bound program */
const MAX_EDITED = 2_000_000

/** Reads a file of a server. */
async function readFile(api: ApiClient, serverId: string, path: string): Promise<FileContent> {
  const file = await api.call('files.read', { params: { serverId }, query: { path } })
  if (!('content' in file)) throw new Error(`${path} is a directory.`)
  if (file.encoding === 'base64') return { kind: 'bytes', bytes: Uint8Array.fromBase64(file.content) }
  return { kind: 'text', text: file.content }
}

/** Writes a text file of a server. */
export async function writeText(
  api: ApiClient,
  serverId: string,
  path: string,
  content: string,
): Promise<void> {
  await api.call('files.write', { params: { serverId }, body: { path, content } })
}

/** Writes a file of this machine to a server, whatever is in it. */
export async function uploadFile(api: ApiClient, serverId: string, path: string, file: File): Promise<void> {
  const content = new Uint8Array(await file.arrayBuffer()).toBase64()
  await api.call('files.write', { params: { serverId }, body: { path, content, encoding: 'base64' } })
}

/** Has the browser save a file. */
function download(path: string, content: FileContent): void {
  const blob = new Blob([content.kind === 'text' ? content.text : content.bytes])
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = path.slice(path.lastIndexOf('/') + 1)
  link.click()
  URL.revokeObjectURL(url)
}
