import { useEffect, useMemo, useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import { Button } from '../button.tsx'
import { plainText } from '../plain-text.ts'
import { Search } from '../search.tsx'
import { VirtualList } from '../virtual-list.tsx'
import { type LogLine, LogLines, LogSearch, type OpenLog } from './log-lines.ts'

/** Properties of a log. */
interface LogViewProps {
  /** Name for screen readers. */
  label: string
  open: OpenLog
}

/** A log that grows while it is looked at. Scrolling up stops following, the button or the end goes on. */
export function LogView({ label, open }: LogViewProps) {
  const { router, shortcuts } = useDashboard()
  const log = useMemo(() => new LogLines(open), [open])
  const search = useMemo(() => new LogSearch(), [log])
  const [isFollowing, setFollowing] = useState(true)
  useEffect(() => log.follow(), [log])
  useEffect(
    () => shortcuts.add({ keys: 'f', label: 'Follow the log', run: () => setFollowing(true) }),
    [shortcuts],
  )
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const hasTimes = router.query.value.get('times') === 'yes'
  const all = log.lines.value
  const lines = search.find(all, sought)
  return (
    <div class="log">
      <div class="actions toolbar">
        <Search label="Search the log" />
        <Button
          look="quiet"
          pressed={hasTimes}
          onClick={() => router.setQuery('times', hasTimes ? '' : 'yes')}
        >
          Times
        </Button>
        <Button look="quiet" icon="down" pressed={isFollowing} onClick={() => setFollowing(true)}>
          Follow
        </Button>
        <span class="quiet number">
          {sought === '' ? '' : `${lines.length} of `}
          {all.length} {all.length === 1 ? 'line' : 'lines'}
        </span>
      </div>
      {log.failure.value !== null && <p class="notice failure">{log.failure.value}</p>}
      {lines.length === 0 && log.isLoaded.value ? (
        <p class="quiet toolbar">{sought === '' ? 'Nothing was printed yet.' : `No line has “${sought}”.`}</p>
      ) : (
        <VirtualList
          items={lines}
          rowHeight={20}
          isMeasured
          keyOf={({ seq }) => seq}
          label={label}
          isFollowing={isFollowing}
          onFollow={setFollowing}
        >
          {(line) => <Line line={line} hasTime={hasTimes} />}
        </VirtualList>
      )}
    </div>
  )
}

const Line = ({ line, hasTime }: { line: LogLine; hasTime: boolean }) => (
  <div class={`log-line ${line.stream ?? ''}${line.phase === undefined ? '' : ' phase'}`}>
    {hasTime && <time dateTime={line.at}>{line.at.slice(11, 23)}</time>}
    {/* A line without text is of the same source as those around it. */}
    <span class="log-source">{line.text.trim() !== '' && (line.worker ?? line.source)}</span>
    <span class="log-text">{plainText(line.text)}</span>
  </div>
)
