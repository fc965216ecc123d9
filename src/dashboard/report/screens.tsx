import { useEffect, useMemo } from 'preact/hooks'
import type { RecordedRun } from '../../http/dashboard/report-page.ts'
import type { IconName } from '../components/button.tsx'
import { Search, Select } from '../components/filters.tsx'
import { Empty, ScreenPage } from '../components/page.tsx'
import { State } from '../components/state.tsx'
import { goalTitle, withoutEscapes } from '../components/text.ts'
import { VirtualList } from '../components/virtual-list.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ScreenProps, ScreenRoute } from '../router.ts'
import { EntryView } from '../screens/task/entry-view.tsx'
import { TaskTranscript, type TranscriptMessage } from '../screens/task/transcript.ts'
import { DeliveryList } from '../screens/webhooks/deliveries.tsx'

/** An entry of the navigation of a report. */
interface Entry {
  readonly path: string
  readonly label: string
  readonly icon: IconName
}

/** The links of a report. */
export const REPORT_NAVIGATION: readonly Entry[] = [
  { path: '/', label: 'Timeline', icon: 'timeline' },
  { path: '/dashboard/requests', label: 'Requests', icon: 'requests' },
  { path: '/dashboard/webhooks', label: 'Deliveries', icon: 'webhooks' },
  { path: '/dashboard/logs', label: 'Logs', icon: 'file' },
  { path: '/dashboard/run', label: 'Run', icon: 'tasks' },
]

/** Returns the screens of a report. The paths are those of the dashboard, where it has the same. */
export function reportRoutes(recorded: RecordedRun): readonly ScreenRoute[] {
  const screen =
    (Screen: ScreenRoute['load'] extends () => Promise<{ default: infer Kind }> ? Kind : never) => () =>
      Promise.resolve({ default: Screen })
  return [
    { path: '/', title: 'Timeline', load: () => import('../screens/timeline/timeline.tsx') },
    {
      path: '/dashboard/requests',
      title: 'Requests',
      load: () => import('../screens/requests/requests.tsx'),
    },
    { path: '/dashboard/webhooks', title: 'Deliveries', load: screen(DeliveriesScreen) },
    { path: '/dashboard/logs', title: 'Logs', load: screen(() => <LogsScreen logs={recorded.logs} />) },
    { path: '/dashboard/run', title: 'Run', load: screen(() => <RunScreen recorded={recorded} />) },
    {
      path: '/dashboard/tasks/:taskId',
      title: 'Task',
      load: screen(({ params }: ScreenProps) => (
        <TaskScreen id={params.taskId ?? ''} events={recorded.transcripts[params.taskId ?? ''] ?? []} />
      )),
    },
  ]
}

/** What was delivered to webhooks, or not. */
const DeliveriesScreen = () => (
  <ScreenPage title="Deliveries" actions={<Search label="Search deliveries" />}>
    <DeliveryList />
  </ScreenPage>
)

/** The log of an app, of a build or of berth itself. */
function LogsScreen({ logs }: Pick<RecordedRun, 'logs'>) {
  const { router } = useDashboard()
  const query = router.query.value
  const log = logs.find(({ name }) => name === query.get('log')) ?? logs[0]
  const sought = (query.get('q') ?? '').toLowerCase()
  const lines = useMemo(() => {
    const all = (log?.text ?? '').split('\n').map((text, seq) => ({ seq, text }))
    return sought === '' ? all : all.filter(({ text }) => text.toLowerCase().includes(sought))
  }, [log, sought])
  if (log === undefined) {
    return (
      <ScreenPage title="Logs">
        <Empty title="Nothing was logged">
          <p>The logs of apps and builds, and what commands and terminals print, are listed here.</p>
        </Empty>
      </ScreenPage>
    )
  }
  return (
    <ScreenPage title="Logs" isFull actions={<Search label="Search the log" />}>
      <div class="filters">
        <Select
          name="log"
          label="Log"
          choices={logs.map(({ name }, index) => ({ value: index === 0 ? '' : name, label: name }))}
        />
        {log.isCut && <span class="quiet">Only its last lines: the file in the directory logs has all.</span>}
      </div>
      <div class="log">
        <VirtualList items={lines} rowHeight={20} isMeasured keyOf={({ seq }) => seq} label={log.name}>
          {({ text }) => (
            <div class="log-line">
              <span class="log-text">{withoutEscapes(text)}</span>
            </div>
          )}
        </VirtualList>
      </div>
    </ScreenPage>
  )
}

/** How the run went. */
const RunScreen = ({ recorded: { title, lines } }: { recorded: RecordedRun }) => (
  <ScreenPage title={title}>
    {lines.map((line, index) => {
      const key = `${index} ${line}`
      return line.startsWith('  ') ? (
        <p class="notice" key={key}>
          <bdi>{line.trim()}</bdi>
        </p>
      ) : (
        <p key={key}>
          <bdi>{line}</bdi>
        </p>
      )
    })}
  </ScreenPage>
)

/** What an agent did for a task. */
function TaskScreen({ id, events }: { id: string; events: readonly unknown[] }) {
  const { store } = useDashboard()
  const task = store.tasks.open().get(id)
  const transcript = useMemo(() => new TaskTranscript(), [id])
  useEffect(() => {
    for (const event of events) transcript.add(event as TranscriptMessage)
  }, [transcript])
  return (
    <ScreenPage
      title={task === undefined ? id : goalTitle(task.goal)}
      above={<a href="/">Timeline</a>}
      beside={task && <State of={task.status} />}
    >
      <section class="conversation" aria-label="Conversation">
        {task && (
          <div class="said answer">
            <p class="speaker">Goal</p>
            <p class="words">{task.goal}</p>
          </div>
        )}
        {transcript.entries.value.map((entry) => (
          <EntryView key={entry.key} entry={entry} />
        ))}
      </section>
    </ScreenPage>
  )
}
