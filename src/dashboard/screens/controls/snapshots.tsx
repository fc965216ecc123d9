import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../../client/client.ts'
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

/** The names of the state before a reset and before a restore, so that they can be undone. */
const BEFORE_RESET = 'before-reset'
const BEFORE_RESTORE = 'before-restore'

/** What a reset and a restore lose for good: the journal is in memory, and in no snapshot. */
const JOURNAL_IS_LOST = 'The journal of requests is emptied, and an undo does not bring it back.'

/** Reports whether the dashboard saved a snapshot by itself. */
const isForUndo = ({ name }: Snapshot): boolean => name === BEFORE_RESET || name === BEFORE_RESTORE

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
    notices.done(`The state is that of ${given}.`)
  }
  /** Restores a snapshot; the state of before is saved first, but never over the one that is to be restored. */
  const restoreWithUndo = async (given: string): Promise<void> => {
    if (given === BEFORE_RESTORE) return restore(given)
    await save(BEFORE_RESTORE)
    await api.call('control.snapshots.restore', { params: { name: given } })
    notices.done(`The state is that of ${given}.`, {
      label: 'Undo',
      run: () => void notices.attempt(() => restore(BEFORE_RESTORE)),
    })
  }
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
            await save(BEFORE_RESET)
            await api.call('control.reset', { body: {} })
            notices.done('The instance was reset.', {
              label: 'Undo',
              run: () => void notices.attempt(() => restore(BEFORE_RESET)),
            })
          }}
        >
          <p>
            All servers, projects, tasks and keys but the first are gone. The state is saved as{' '}
            <code>{BEFORE_RESET}</code> first, so this can be undone. {JOURNAL_IS_LOST}
          </p>
        </Confirm>
      )}
      {asked?.action === 'restore' && (
        <Confirm
          title={`Restore ${asked.name}?`}
          action="Restore"
          onClose={() => setAsked(null)}
          onConfirm={() => restoreWithUndo(asked.name)}
        >
          <p>
            The present state is replaced.{' '}
            {asked.name === BEFORE_RESTORE ? (
              'Save it first if you want it back.'
            ) : (
              <>
                It is saved as <code>{BEFORE_RESTORE}</code> first, so this can be undone.
              </>
            )}{' '}
            {JOURNAL_IS_LOST}
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
      <Button onClick={() => setAsked('diff')}>What differs</Button>
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
          title={`Delete the snapshot ${name}?`}
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
