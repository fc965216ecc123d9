import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { Button, Menu, type MenuItem } from '../../components/button.tsx'
import { PlaceFilters, Search, Select, Switch } from '../../components/filters.tsx'
import { JournalSince } from '../../components/http.tsx'
import { type Held, HoldButton, useHeld } from '../../components/live-list.tsx'
import { Empty, Failure, Loading, ScreenPage } from '../../components/page.tsx'
import { TimeOfDay } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { WholeRequest } from '../../store/store.ts'
import { isOwn, isRead, RequestReader } from '../requests/facts.tsx'
import { FirstRun } from '../servers.tsx'
import { EntryRow } from './entry-row.tsx'
import { save, toHar, toJsonLines, type WholeRequests } from './export.ts'
import { isThing, some, type TreeEntry } from './tree.ts'
import { TaskSteps, useTree } from './use-tree.ts'

/** A row of the list: an entry, or the line of the mark. */
type Row =
  | { readonly entry: TreeEntry; readonly level: number; readonly isOld: boolean }
  | { readonly mark: number }

/** Everything that happens on the instance, below its cause, the newest at the top. */
export default function TimelineScreen() {
  const { api, store, router, context } = useDashboard()
  const query = router.query.value
  const [taskSteps] = useState(() => new TaskSteps(api))
  useEffect(() => () => taskSteps.close(), [])
  const toggle = useCallback((id: string, serverId: string) => taskSteps.toggle(id, serverId), [])
  const openTasks = taskSteps.ids
  const tree = useTree(taskSteps)
  const mark = Date.parse(query.get('since') ?? '')
  const scope = query.toString()
  const [facts] = useState(() => new RequestReader())
  const shown = useMemo(() => tree.filter(filterOf(query, facts)), [tree, scope])
  const rows = useMemo(() => rowsOf(shown, mark), [shown, mark])
  const held = useHeld(rows, versionOf, scope)
  const lists = [store.servers, store.tasks, ...(context.is_admin ? [store.requests, store.events] : [])]
  const failed = lists.find(({ state }) => state.value instanceof Error)
  const error = failed?.state.value
  const isLoading = lists.some(({ state }) => state.value === 'loading')
  if (error instanceof Error) return <Failure error={error} retry={() => failed?.load()} />
  const isNew = !isLoading && !context.is_report && !tree.some(filterOf(NO_FILTER, facts))
  return (
    <ScreenPage
      title="Timeline"
      isFull
      actions={!isNew && <Actions entries={sinceMark(shown, mark)} held={held} mark={mark} />}
    >
      {isNew ? (
        <>
          <FirstRun />
          {context.is_admin && <JournalSince />}
        </>
      ) : (
        <>
          <Filters />
          {isLoading && shown.length === 0 ? (
            <Loading />
          ) : shown.length === 0 ? (
            <Empty title={`Nothing ${query.size > 0 ? 'fits the filters' : 'has happened but reads'}`}>
              {!context.is_report && <p>What happens appears here at once.</p>}
            </Empty>
          ) : (
            <div class="table timeline">
              <VirtualList
                items={held.shown}
                rowHeight={32}
                isReused
                keyOf={keyOf}
                label="What happened, the newest first"
                edge="start"
                isFollowing={!held.isHeld}
                onFollow={held.onFollow}
              >
                {(row) =>
                  'mark' in row ? (
                    <p class="mark">
                      marked at <TimeOfDay at={row.mark} />
                    </p>
                  ) : (
                    <EntryRow {...row} isOpen={isOpenIn(openTasks, row.entry)} onToggle={toggle} />
                  )
                }
              </VirtualList>
            </div>
          )}
        </>
      )}
    </ScreenPage>
  )
}

/** Most requests whose bodies are exported. @bound reader */
const MOST_EXPORTED = 10_000

/** Reports whether the agent's steps are shown below an entry. */
const isOpenIn = (openTasks: ReadonlySet<string>, { subject }: TreeEntry): boolean =>
  subject.kind === 'task' && openTasks.has(subject.value.id)

/** The buttons at the end of the title's row. */
function Actions({ entries, held, mark }: { entries: readonly TreeEntry[]; held: Held<Row>; mark: number }) {
  const { router, clock, context, api } = useDashboard()
  const { base_url: baseUrl, version, is_admin: isAdmin } = context
  const whole = async (): Promise<WholeRequests> => {
    if (!isAdmin) return new Map()
    const { requests } = await api.call('control.requests.list', { query: { limit: MOST_EXPORTED } })
    return new Map((requests as WholeRequest[]).map((request) => [request.id, request]))
  }
  const exports: MenuItem[] = [
    {
      label: 'Export as JSON Lines',
      icon: 'download',
      run: async () => save('berth-timeline.jsonl', 'application/jsonl', toJsonLines(entries, await whole())),
    },
    {
      label: 'Export the requests as HAR',
      icon: 'download',
      run: async () =>
        save('berth-requests.har', 'application/json', toHar(entries, await whole(), { baseUrl, version })),
    },
  ]
  return (
    <>
      <Search label="Search the timeline" />
      {!context.is_report && <HoldButton held={held} />}
      {context.is_report ? null : Number.isNaN(mark) ? (
        <Button onClick={() => router.setQuery('since', new Date(clock.read()).toISOString())}>
          Mark from here
        </Button>
      ) : (
        <Button onClick={() => router.setQuery('since', '')}>Remove the mark</Button>
      )}
      <Menu label="Export" items={isAdmin ? exports : exports.slice(0, 1)} />
    </>
  )
}

/** The filters, all in the address. */
function Filters() {
  const { context } = useDashboard()
  return (
    <div class="filters">
      <Select
        name="kind"
        label="Kind"
        choices={[
          { value: '', label: 'Without reads' },
          { value: 'all', label: 'Everything' },
          ...KINDS.filter(({ value }) => context.is_admin || !TRAFFIC.includes(value)),
        ]}
      />
      <PlaceFilters />
      <Switch name="errors" label="Errors only" />
      {context.is_admin && <Switch name="own" label="berth's own clients" />}
      {context.is_admin && <JournalSince />}
    </div>
  )
}

const TRAFFIC = ['request', 'event']

const KINDS = [
  { value: 'request', label: 'Requests' },
  { value: 'server', label: 'Servers' },
  { value: 'project', label: 'Projects' },
  { value: 'task', label: 'Tasks' },
  { value: 'build', label: 'Builds' },
  { value: 'execution', label: 'Executions' },
  { value: 'terminal', label: 'Terminals' },
  { value: 'deployment', label: 'Deployments' },
  { value: 'event', label: 'Events' },
]

/** Returns the filter of an address: an entry is shown if it or something that it caused fits. */
function filterOf(query: URLSearchParams, facts: RequestReader): (entry: TreeEntry) => boolean {
  const kind = query.get('kind') ?? ''
  const server = query.get('server') ?? ''
  const account = query.get('account') ?? ''
  const sought = (query.get('q') ?? '').toLowerCase()
  const onlyErrors = query.get('errors') === '1'
  const showsOwn = query.get('own') === '1'
  return (root) => {
    const { subject } = root
    if (subject.kind === 'request') {
      const isQuiet = root.children.length === 0 && !root.isError
      if (!showsOwn && isOwn(subject.value) && root.children.length === 0) return false
      if (kind === '' && isQuiet && isRead(subject.value)) return false
    }
    return (
      (kind === '' || kind === 'all' || some(root, (entry) => entry.subject.kind === kind)) &&
      (!onlyErrors || some(root, ({ isError }) => isError)) &&
      (server === '' || some(root, ({ serverId }) => serverId === server)) &&
      (account === '' || some(root, ({ accountId }) => accountId === account)) &&
      (sought === '' || some(root, (entry) => textOf(entry, facts).includes(sought)))
    )
  }
}

/** Returns the text of an entry that a search looks through, in lower case. */
function textOf({ subject }: TreeEntry, facts: RequestReader): string {
  if (subject.kind === 'request') return facts.sought(subject.value)
  if (isThing(subject))
    return `${subject.kind} ${subject.value.name} ${subject.value.state} ${subject.value.reason ?? ''} ${subject.value.id}`.toLowerCase()
  if (subject.kind === 'event') return `${subject.value.event} ${subject.value.id}`
  if (subject.kind === 'step') {
    const step = subject.value
    return (step.kind === 'tool' ? `${step.tool} ${JSON.stringify(step.input)}` : step.text).toLowerCase()
  }
  const { url, status, attempts } = subject.value
  const said = attempts.map(({ error, response }) => `${error ?? ''} ${response?.body ?? ''}`)
  return [url, status, ...said].join(' ').toLowerCase()
}

const NO_FILTER = new URLSearchParams()

/** Returns the rows of entries, each with its effects below it, and the line of the mark. */
function rowsOf(entries: readonly TreeEntry[], mark: number): Row[] {
  const rows: Row[] = []
  let isMarked = Number.isNaN(mark)
  const add = (entry: TreeEntry, level: number, isOld: boolean): void => {
    rows.push({ entry, level, isOld })
    for (const child of entry.children) add(child, level + 1, isOld)
  }
  for (const entry of entries) {
    const isOld = entry.last < mark
    if (isOld && !isMarked) rows.push({ mark })
    isMarked ||= isOld
    add(entry, 0, isOld)
  }
  if (!isMarked) rows.push({ mark })
  return rows
}

/** Returns the entries of which something happened since the mark, if there is one. */
const sinceMark = (entries: readonly TreeEntry[], mark: number): readonly TreeEntry[] =>
  Number.isNaN(mark) ? entries : entries.filter(({ last }) => last >= mark)

// Rows that cross the mark are drawn again: Chromium was seen to keep the colour of text whose row had lost its class.
const keyOf = (row: Row): string =>
  'mark' in row ? 'mark' : `${row.entry.key}${row.isOld ? ' before the mark' : ''}`
const versionOf = (row: Row): string =>
  'mark' in row ? 'mark' : `${row.entry.key} ${row.level === 0 ? 0 : row.entry.last}`
