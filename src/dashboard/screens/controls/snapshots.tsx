import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { isUndoName, KEPT_UNDOS } from '../../../testing/snapshots/undo-names.ts'
import { Button } from '../../components/button.tsx'
import { formatBytes } from '../../components/bytes.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { DateAndTime } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import { Fork } from './fork.tsx'
import { SnapshotDiff } from './snapshot-diff.tsx'

type Snapshot = ResponseOf<'control.snapshots.list'>['snapshots'][number]

/** What a reset and a restore lose for good: the journal is in memory, and in no snapshot. */
const JOURNAL_IS_LOST = 'The journal of requests is emptied, and an undo does not bring it back.'

/** How both can be undone. */
const IS_SAVED = `The state of now is saved as a snapshot first, so this can be undone; the last ${KEPT_UNDOS} such are kept.`

/** Reports whether the dashboard saved a snapshot by itself. */
const isForUndo = ({ name }: Snapshot): boolean => isUndoName(name)

/** The whole state of the instance: save it, come back to it, begin anew. */
export function Snapshots() {
  const { api, notices, store } = useDashboard()
  const [name, setName] = useState('')
  const [asked, setAsked] = useState<{ action: 'reset' } | { action: 'restore'; name: string } | null>(null)
  const { snapshots } = store
  const save = async (given: string): Promise<void> => {
    snapshots.add(await api.call('control.snapshots.create', { body: { name: given } }))
  }
  const restore = async (given: string): Promise<void> => {
    await api.call('control.snapshots.restore', { params: { name: given } })
    notices.done(`The state is that of the snapshot “${given}”.`)
  }
  /** Returns the action that goes back to the state that was saved before it was replaced. */
  const undoing = (name: string | undefined): { label: string; run: () => void } | undefined =>
    name === undefined ? undefined : { label: 'Undo', run: () => void notices.attempt(() => restore(name)) }
  return (
    <Section
      title="State"
      actions={
        <Button look="danger" onClick={() => setAsked({ action: 'reset' })}>
          Reset the state
        </Button>
      }
    >
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(() => save(name)).then((ok) => ok && setName(''))
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
                <SnapshotCard
                  key={snapshot.name}
                  snapshot={snapshot}
                  onRestore={() => setAsked({ action: 'restore', name: snapshot.name })}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      <CommandLines
        berth={`berth snapshots save ${quoted(name)}`}
        method="POST"
        path="/_berth/snapshots"
        body={{ name }}
      />
      {asked?.action === 'reset' && (
        <Confirm
          title="Reset the instance?"
          action="Reset"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            const { undo } = await api.call('control.reset', { body: { undo: true } })
            notices.done('The instance was reset.', undoing(undo))
          }}
        >
          <p>
            All servers, projects and tasks are gone, and all keys but the first. {IS_SAVED} {JOURNAL_IS_LOST}
          </p>
        </Confirm>
      )}
      {asked?.action === 'restore' && (
        <Confirm
          title={`Restore the snapshot “${asked.name}”?`}
          action="Restore"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            const params = { name: asked.name }
            const restored = await api.call('control.snapshots.restore', { params, body: { undo: true } })
            notices.done(`The state is that of the snapshot “${asked.name}”.`, undoing(restored.undo))
          }}
        >
          <p>
            This snapshot takes the place of the state. {IS_SAVED} {JOURNAL_IS_LOST}
          </p>
        </Confirm>
      )}
    </Section>
  )
}

function SnapshotCard({ snapshot, onRestore }: { snapshot: Snapshot; onRestore: () => void }) {
  const { api, store } = useDashboard()
  const [asked, setAsked] = useState<'diff' | 'fork' | 'delete' | null>(null)
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
          {formatBytes(bytes)}, saved <DateAndTime at={createdAt} />
        </p>
      </div>
      <Button onClick={() => setAsked('diff')}>Compare with the current state</Button>
      <Button onClick={() => setAsked('fork')}>Fork</Button>
      <Button onClick={onRestore}>Restore</Button>
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
          <p>It cannot be brought back. The state itself stays as it is.</p>
        </Confirm>
      )}
      {asked === 'diff' && <SnapshotDiff name={name} onClose={() => setAsked(null)} />}
      {asked === 'fork' && <Fork name={name} onClose={() => setAsked(null)} />}
    </li>
  )
}
