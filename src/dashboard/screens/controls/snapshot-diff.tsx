import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { serverName } from '../../components/copy.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Failure } from '../../components/loaded.tsx'
import { useDashboard } from '../../dashboard.ts'

type Diff = ResponseOf<'control.snapshots.diff'>
type Counts = Pick<Diff['kinds'][number], 'added' | 'removed' | 'changed'>

const SIGNS = { added: '+', removed: '−', changed: '~' } as const

/** What differs between a snapshot and now, or another one. */
export function SnapshotDiff({ name, onClose }: { name: string; onClose: () => void }) {
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
          <option value="">the state of now</option>
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
        berth={`berth snapshot diff ${quoted(name)}${to === '' ? '' : ` ${quoted(to)}`}`}
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
              <bdi>{serverName(server.server_id, store.servers.open().get(server.server_id)?.task)}</bdi>
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
