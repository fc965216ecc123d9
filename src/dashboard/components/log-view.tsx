import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ResponseOf, StreamEventOf } from '../../route-client/client.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'
import { Search } from './filters.tsx'
import { withoutEscapes } from './text.ts'
import { VirtualList } from './virtual-list.tsx'

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
    <span class="log-text">{withoutEscapes(line.text)}</span>
  </div>
)

/** A line of a log, as the API gives it. */
type LogLine = ResponseOf<'projects.logs'>['logs'][number]

/** The events of a log's stream. */
type LogEvent = StreamEventOf<'projects.logs'>

/**
 * Lines that are kept: more would take memory that no reader has a use for. The oldest go first, many at a time, since
 * all others move then.
 * @bound program
 */
const MAX_LINES = 110_000
const DROPPED_LINES = 10_000

/** Milliseconds within which lines are added together: a program may print thousands a second. */
const BATCH_MS = 50

/** Milliseconds after which a log that has sent no line counts as empty: existing lines arrive at once. */
const EMPTY_MS = 1_000

/** Milliseconds before a stream that has ended is opened again. */
const RETRY_MS = 2_000

/** Opens the stream of a log, with its last lines. */
type OpenLog = (tail: number, signal: AbortSignal) => AsyncIterable<LogEvent>

/** The lines of a log while it is followed. */
class LogLines {
  /** The lines that are known, the oldest first. */
  readonly lines: Signal<readonly LogLine[]> = signal([])
  /** Why the log is not followed at present; null while it is. */
  readonly failure: Signal<string | null> = signal(null)
  /** Whether the lines that were there are loaded. */
  readonly isLoaded: Signal<boolean> = signal(false)
  readonly #open: OpenLog
  readonly #waiting: LogLine[] = []
  #following: AbortController | null = null
  #flush: ReturnType<typeof setTimeout> | undefined

  constructor(open: OpenLog) {
    this.#open = open
  }

  /**
   * Follows the log while the page is visible: browsers keep six connections to an instance at most, for all pages.
   *
   * @returns a function that ends it
   */
  follow(): () => void {
    const update = (): void => {
      if (document.hidden) this.#stop()
      else this.#start()
    }
    update()
    document.addEventListener('visibilitychange', update)
    return () => {
      document.removeEventListener('visibilitychange', update)
      this.#stop()
    }
  }

  #stop(): void {
    this.#following?.abort()
    this.#following = null
  }

  #start(): void {
    if (this.#following) return
    const following = new AbortController()
    this.#following = following
    void this.#run(following.signal)
    setTimeout(() => {
      if (!following.signal.aborted) this.isLoaded.value = true
    }, EMPTY_MS)
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { event, data } of this.#open(5_000, signal)) {
          if (event === 'line') this.#add(data)
        }
        this.failure.value = null
      } catch (error) {
        if (!signal.aborted) this.failure.value = messageOf(error)
      }
      this.isLoaded.value = true
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  #add(line: LogLine): void {
    this.#waiting.push(line)
    // More of them will not be kept.
    if (this.#waiting.length > MAX_LINES + DROPPED_LINES) this.#waiting.splice(0, DROPPED_LINES)
    this.#flush ??= setTimeout(() => {
      this.#flush = undefined
      const lines = this.lines.peek()
      const last = lines.at(-1)?.seq ?? 0
      const added = this.#waiting.splice(0).filter(({ seq }) => seq > last)
      this.isLoaded.value = true
      this.failure.value = null
      if (added.length === 0) return
      const all = lines.concat(added)
      this.lines.value = all.length > MAX_LINES ? all.slice(DROPPED_LINES - MAX_LINES) : all
    }, BATCH_MS)
  }
}

/** Finds the lines that have a text. In a growing log it searches the new lines only. */
class LogSearch {
  #sought = ''
  #all: readonly LogLine[] = []
  #found: LogLine[] = []

  /** Returns the lines that have a text, in lower case; all if it is empty. The same list, if they are the same. */
  find(all: readonly LogLine[], sought: string): readonly LogLine[] {
    if (sought === '') return all
    if (all === this.#all && sought === this.#sought) return this.#found
    const first = all[0]?.seq ?? 0
    const last = sought === this.#sought ? (this.#all.at(-1)?.seq ?? 0) : 0
    const known = this.#found.filter(({ seq }) => seq >= first && seq <= last)
    // The lines after the last one that was searched are at the end.
    let from = all.length
    while (from > 0 && (all[from - 1]?.seq ?? 0) > last) from -= 1
    const fresh = all.slice(from).filter(({ text }) => text.toLowerCase().includes(sought))
    this.#all = all
    this.#sought = sought
    this.#found = [...known, ...fresh]
    return this.#found
  }
}
