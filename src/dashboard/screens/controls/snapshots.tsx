import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { isUndoName, KEPT_UNDOS } from '../../../testing/names.ts'
import { Button } from '../../components/button.tsx'
import { CopyButton, serverLabel } from '../../components/copy.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { Failure, Loaded, Section } from '../../components/page.tsx'
import { bytesText } from '../../components/text.ts'
import { DateAndTime } from '../../components/time.tsx'
import { type Dashboard, useDashboard } from '../../dashboard.ts'
import type { Snapshot } from '../../store/store.ts'

/** The loss by a reset or a restore that no undo brings back: the journal is in memory, and in no snapshot. */
const JOURNAL_IS_LOST = 'The journal of requests is emptied, and an undo does not bring it back.'

/** How both can be undone. */
const IS_SAVED = `The current state is saved as a snapshot first, so this can be undone; the last ${KEPT_UNDOS} of these are kept.`

/** Reports whether the dashboard saved a snapshot by itself. */
const isForUndo = ({ name }: Snapshot): boolean => isUndoName(name)

/** Saves, restores and resets the whole state of the instance. */
export function StateControls() {
  const { api, notices, store } = useDashboard()
  const [name, setName] = useState('')
  const [isResetting, setResetting] = useState(false)
  const { snapshots } = store
  const save = async (): Promise<void> => {
    snapshots.add(await api.call('control.snapshots.create', { body: { name } }))
  }
  return (
    <Section
      title="State"
      actions={
        <Button look="danger" onClick={() => setResetting(true)}>
          Reset the state
        </Button>
      }
    >
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(save).then((ok) => ok && setName(''))
        }}
      >
        <input
          type="text"
          required
          aria-label="Name of the snapshot"
          placeholder="Name of the snapshot"
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Button type="submit">Save</Button>
      </form>
      <Loaded of={snapshots}>
        {(all) =>
          all.length === 0 ? (
            <p class="quiet">No snapshot was saved yet.</p>
          ) : (
            <ul class="cards">
              {[...all.filter((one) => !isForUndo(one)), ...all.filter(isForUndo)].map((snapshot) => (
                <SnapshotCard key={snapshot.name} snapshot={snapshot} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <CommandLines
        berth={`berth snapshots save ${shellQuoted(name)}`}
        method="POST"
        path="/_berth/snapshots"
        body={{ name }}
      />
      {isResetting && <ResetDialog onClose={() => setResetting(false)} />}
    </Section>
  )
}

/** Reports that the state was replaced, and offers to restore the snapshot that was saved before, if there is one. */
function reportReplaced({ api, notices }: Dashboard, text: string, undo: string | undefined): void {
  if (undo === undefined) {
    notices.done(text)
    return
  }
  const restore = async (): Promise<void> => {
    await api.call('control.snapshots.restore', { params: { name: undo } })
    notices.done(`The state is that of the snapshot “${undo}”.`)
  }
  notices.done(text, { label: 'Undo', run: () => void notices.attempt(restore) })
}

/** Asks before the instance is reset. */
function ResetDialog({ onClose }: { onClose: () => void }) {
  const dashboard = useDashboard()
  return (
    <Confirm
      title="Reset the instance?"
      action="Reset"
      onClose={onClose}
      onConfirm={async () => {
        const { undo } = await dashboard.api.call('control.instance.reset', { body: { undo: true } })
        reportReplaced(dashboard, 'The instance was reset.', undo)
      }}
    >
      <p>
        All servers, projects and tasks are gone, and all keys but the first. {IS_SAVED} {JOURNAL_IS_LOST}
      </p>
    </Confirm>
  )
}

/** Asks before a snapshot is restored. */
function RestoreDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const dashboard = useDashboard()
  return (
    <Confirm
      title={`Restore the snapshot “${name}”?`}
      action="Restore"
      onClose={onClose}
      onConfirm={async () => {
        const given = { params: { name }, body: { undo: true } }
        const { undo } = await dashboard.api.call('control.snapshots.restore', given)
        reportReplaced(dashboard, `The state is that of the snapshot “${name}”.`, undo)
      }}
    >
      <p>
        This snapshot takes the place of the state. {IS_SAVED} {JOURNAL_IS_LOST}
      </p>
    </Confirm>
  )
}

function SnapshotCard({ snapshot }: { snapshot: Snapshot }) {
  const { api, store } = useDashboard()
  const [asked, setAsked] = useState<'diff' | 'fork' | 'restore' | 'delete' | null>(null)
  const { name, bytes, created_at: createdAt } = snapshot
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>
            <bdi>{name}</bdi>
          </strong>{' '}
          {isForUndo(snapshot) && <span class="chip">saved to undo</span>}
        </p>
        <p class="quiet">
          {bytesText(bytes)}, saved <DateAndTime at={createdAt} />
        </p>
      </div>
      <Button onClick={() => setAsked('diff')}>Compare with the current state</Button>
      <Button onClick={() => setAsked('fork')}>Fork</Button>
      <Button onClick={() => setAsked('restore')}>Restore</Button>
      <Button
        look="quiet"
        icon="trash"
        label={`Delete the snapshot ${name}`}
        onClick={() => setAsked('delete')}
      />
      {asked === 'delete' && (
        <Confirm
          title={`Delete the snapshot “${name}”?`}
          action="Delete"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            await api.call('control.snapshots.delete', { params: { name } })
            store.snapshots.remove(name)
          }}
        >
          <p>It cannot be brought back. The state itself does not change.</p>
        </Confirm>
      )}
      {asked === 'diff' && <SnapshotDiff name={name} onClose={() => setAsked(null)} />}
      {asked === 'restore' && <RestoreDialog name={name} onClose={() => setAsked(null)} />}
      {asked === 'fork' && <Fork name={name} onClose={() => setAsked(null)} />}
    </li>
  )
}

type Diff = ResponseOf<'control.snapshots.diff'>
type Counts = Pick<Diff['kinds'][number], 'added' | 'removed' | 'changed'>

const SIGNS = { added: '+', removed: '−', changed: '~' } as const

/** What differs between a snapshot and now, or another one. */
function SnapshotDiff({ name, onClose }: { name: string; onClose: () => void }) {
  const { api, store } = useDashboard()
  const [to, setTo] = useState('')
  const [diff, setDiff] = useState<Diff | Error | null>(null)
  const others = store.snapshots.list.value.filter((snapshot) => snapshot.name !== name)
  useEffect(() => {
    let isShown = true
    setDiff(null)
    void api.call('control.snapshots.diff', { params: { name }, query: to === '' ? {} : { to } }).then(
      (found) => isShown && setDiff(found),
      (error: Error) => isShown && setDiff(error),
    )
    return () => {
      isShown = false
    }
  }, [api, name, to])
  const query = to === '' ? '' : `?${new URLSearchParams({ to })}`
  return (
    <Dialog title={`What differs from “${name}”`} isWide onClose={onClose}>
      <label class="field">
        <span>Compare with</span>
        <select value={to} onChange={({ currentTarget }) => setTo(currentTarget.value)}>
          <option value="">the current state</option>
          {others.map((snapshot) => (
            <option key={snapshot.name} value={snapshot.name}>
              {snapshot.name}
            </option>
          ))}
        </select>
      </label>
      <div aria-live="polite">
        {diff instanceof Error ? (
          <Failure error={diff} />
        ) : diff === null ? null : (
          <Differences diff={diff} />
        )}
      </div>
      <CommandLines
        berth={`berth snapshot diff ${shellQuoted(name)}${to === '' ? '' : ` ${shellQuoted(to)}`}`}
        method="GET"
        path={`/_berth/snapshots/${name}/diff${query}`}
      />
    </Dialog>
  )
}

function Differences({ diff: { kinds, files } }: { diff: Diff }) {
  const { store } = useDashboard()
  if (kinds.length + files.length === 0) return <p class="notice">Nothing differs.</p>
  return (
    <div class="differences">
      {kinds.map((kind) => (
        <details key={kind.kind} open={kind.items.length <= 10}>
          <summary>
            <strong>{kind.kind}</strong> <CountsOf of={kind} />
          </summary>
          <ul>
            {kind.items.map(({ change, id, name, fields }) => (
              <li key={`${change} ${id}`} class={change}>
                <span>{SIGNS[change]}</span>
                <span>
                  <bdi>{name || id}</bdi> {name && <code class="quiet">{id}</code>}{' '}
                  {fields.length > 0 && <span class="quiet">{fields.join(', ')}</span>}
                </span>
              </li>
            ))}
          </ul>
          <Left of={kind} shown={kind.items.length} />
        </details>
      ))}
      {files.map((server) => (
        <details key={server.server_id} open={server.files.length <= 10}>
          <summary>
            <strong>
              files of{' '}
              <bdi>{serverLabel(server.server_id, store.servers.open().get(server.server_id)?.task)}</bdi>
            </strong>{' '}
            <CountsOf of={server} />
          </summary>
          <ul>
            {server.files.map(({ change, path }) => (
              <li key={path} class={change}>
                <span>{SIGNS[change]}</span>
                <code>{path}</code>
              </li>
            ))}
          </ul>
          <Left of={server} shown={server.files.length} />
          {!server.is_complete && (
            <p class="quiet">
              Not all files were looked at: there are too many, or berth may not read some directories.
            </p>
          )}
        </details>
      ))}
    </div>
  )
}

const CountsOf = ({ of: { added, removed, changed } }: { of: Counts }) => (
  <span class="quiet">
    {[
      ...(added > 0 ? [`${added} added`] : []),
      ...(removed > 0 ? [`${removed} removed`] : []),
      ...(changed > 0 ? [`${changed} changed`] : []),
    ].join(', ')}
  </span>
)

const Left = ({ of: { added, removed, changed }, shown }: { of: Counts; shown: number }) => {
  const left = added + removed + changed - shown
  return left > 0 ? <p class="quiet">and {left} more</p> : null
}

/** Shows the command that starts a second instance from a snapshot, beside this one. */
function Fork({ name, onClose }: { name: string; onClose: () => void }) {
  const { context } = useDashboard()
  const command = `berth serve --snapshot ${shellQuoted(`${context.data_dir}/snapshots/${name}`)} --ephemeral --port 0`
  return (
    <Dialog title={`A second instance from ${name}`} onClose={onClose}>
      <p>
        Run this on the machine of this instance. It starts beside it, from a copy of the snapshot with the
        same keys, and prints a link that signs you in. Nothing here changes.
      </p>
      <div class="line">
        <code>{command}</code>
        <CopyButton text={command} label="Copy the line" />
      </div>
      <p class="quiet below">
        It ends with Ctrl-C, and its copy with it. To keep the copy, write <code>--data DIR</code> in place of{' '}
        <code>--ephemeral</code>. While both run, public projects of the second respond at{' '}
        <code>SLUG.localhost</code> only: the ports of their own are taken.
      </p>
    </Dialog>
  )
}
