import { useEffect, useMemo, useState } from 'preact/hooks'
import type { PartsOf, ResponseOf } from '../../../route-client/client.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import { Button } from '../../components/button.tsx'
import { Search } from '../../components/filters.tsx'
import { HttpStatus } from '../../components/http.tsx'
import { type Held, HoldButton, useHeld } from '../../components/live-list.tsx'
import { Empty, Failure, Loaded, Loading, ScreenPage, Tabs } from '../../components/page.tsx'
import { span, Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { Detail } from './detail.tsx'
import { isFailed, RequestMarks, RequestReader, shortPath, Who } from './facts.tsx'
import { Filters, filterRequests, hrefWith, isFiltered, scopeOf } from './filters.tsx'

/** Requests to the API, live, the newest at the top; one of them beside the list. */
export default function RequestsScreen() {
  const { store, router, api, notices, context } = useDashboard()
  const query = router.query.value
  const requests = useRequests()
  const { held } = requests
  const isGrouped = query.get('group') === 'errors'
  const clear = async (): Promise<void> => {
    const { deleted } = await api.call('control.requests.clear')
    store.requests.clear()
    router.setQuery('request', '')
    notices.done(`${deleted} requests were removed from the journal.`)
  }
  const all = hrefWith(router.path.value, query, { group: '' })
  // Groups are of all requests that the journal keeps: filters that only the list has do not go with them.
  const errors = hrefWith(router.path.value, query, {
    group: 'errors',
    ...Object.fromEntries(['q', 'server', 'code', 'errors', 'fault', 'request'].map((name) => [name, ''])),
  })
  return (
    <ScreenPage
      title="Requests"
      isFull
      actions={
        <>
          {!isGrouped && <Search label="Search requests" />}
          {!isGrouped && !context.is_report && <HoldButton held={held} />}
          {!context.is_report && (
            <Button icon="trash" onClick={clear}>
              Clear
            </Button>
          )}
        </>
      }
    >
      {!context.is_report && (
        <Tabs
          label="Views of the requests"
          here={isGrouped ? errors : all}
          tabs={[
            { href: all, label: 'All' },
            { href: errors, label: 'Errors by cause' },
          ]}
        />
      )}
      <Filters isGrouped={isGrouped} />
      {isGrouped ? <ErrorGroups /> : <RequestList requests={requests} />}
    </ScreenPage>
  )
}

/** The requests that a screen shows. */
interface ShownRequests {
  /** Those that the filters let pass, the newest first. */
  readonly shown: readonly JournalRequest[]
  readonly held: Held<JournalRequest>
}

/**
 * Returns the requests that the filters of the address let pass, and lets a key close the one beside them.
 *
 * @param serverId the server whose requests are shown; that of the address if it is missing
 */
export function useRequests(serverId?: string): ShownRequests {
  const { store, router, shortcuts } = useDashboard()
  const query = router.query.value
  const requests = store.requests.open().list.value
  const projects = store.projects.open().list.value
  const scope = scopeOf(query)
  const [facts] = useState(() => new RequestReader())
  const shown = useMemo(() => {
    const filters = new URLSearchParams(query)
    if (serverId !== undefined) filters.set('server', serverId)
    return filterRequests({ requests, projects, facts }, filters)
  }, [requests, projects, scope, serverId])
  const held = useHeld(shown, idOf, scope)
  useEffect(
    () =>
      shortcuts.add({
        keys: 'Escape',
        label: 'Close the request',
        isUsable: () => router.query.peek().has('request'),
        run: () => router.setQuery('request', ''),
      }),
    [router, shortcuts],
  )
  return { shown, held }
}

/** A list of requests, with the one that the address names beside it. */
export function RequestList({ requests: { held } }: { requests: ShownRequests }) {
  const { store, router } = useDashboard()
  const query = router.query.value
  const path = router.path.value
  const selected = query.get('request') ?? ''
  return (
    <Loaded of={store.requests}>
      {(all) => (
        <div class={`split${selected === '' ? '' : ' has-detail'}`}>
          {held.shown.length === 0 ? (
            <Nothing isFiltered={isFiltered(query)} hasOwn={all.length > 0} path={path} />
          ) : (
            <div class="table requests">
              <VirtualList
                items={held.shown}
                rowHeight={36}
                isReused
                keyOf={idOf}
                label="Requests, the newest first"
                edge="start"
                isFollowing={!held.isHeld}
                onFollow={held.onFollow}
                current={held.shown.findIndex(({ id }) => id === selected)}
              >
                {(request) => (
                  <RequestRow
                    request={request}
                    isCurrent={request.id === selected}
                    href={hrefWith(path, query, { request: request.id })}
                  />
                )}
              </VirtualList>
            </div>
          )}
          {selected !== '' && <Detail key={selected} id={selected} />}
        </div>
      )}
    </Loaded>
  )
}

const idOf = ({ id }: JournalRequest): string => id

function RequestRow({
  request,
  isCurrent,
  href,
}: {
  request: JournalRequest
  isCurrent: boolean
  href: string
}) {
  const { method, path, operation, status, ms, at, aborted } = request
  // The same element is not compared again, which is most of the work of scrolling.
  return useMemo(
    () => (
      <div class={`row${isCurrent ? ' current' : ''}`}>
        <span class="cell status">
          <HttpStatus of={status} />
        </span>
        <span class="cell method">{method}</span>
        <span class="cell path">
          <a class="row-link" data-shows href={href} aria-current={isCurrent ? 'true' : undefined}>
            <bdi title={path}>{shortPath(path)}</bdi>
          </a>
          <RequestMarks request={request} />
        </span>
        <span class="cell operation quiet">{operation ?? 'no operation'}</span>
        <span class="cell who quiet">
          <Who request={request} />
        </span>
        <span class="cell number quiet">{aborted ? 'left' : span(ms)}</span>
        <span class="cell time quiet">
          <Time at={at} />
        </span>
      </div>
    ),
    [request, isCurrent, href],
  )
}

/** What the list shows without a request. */
const Nothing = ({ isFiltered, hasOwn, path }: { isFiltered: boolean; hasOwn: boolean; path: string }) =>
  isFiltered ? (
    <Empty title="No request fits the filters">
      <p>
        <a href={path}>Show all</a>
      </p>
    </Empty>
  ) : (
    <Empty title="No requests yet">
      <p>Each request to the API appears here at once, with both bodies, and what it caused.</p>
      {hasOwn && (
        <p class="quiet">
          Those of this page and of the command line are hidden. <a href={`${path}?own=1`}>Show them</a>
        </p>
      )}
    </Empty>
  )

type Groups = ResponseOf<'control.requests.errors'>['errors']
type GroupsQuery = NonNullable<PartsOf<'control.requests.errors'>['query']>

/** The failed requests that the journal keeps, by operation and code, the latest first; each leads to its requests. */
function ErrorGroups() {
  const { api, router, store } = useDashboard()
  const [groups, setGroups] = useState<Groups | Error | null>(null)
  const query = router.query.value
  const [account, operation, status] = ['account', 'operation', 'status'].map((name) => query.get(name) ?? '')
  const showsOwn = query.get('own') === '1'
  const requests = store.requests.open().list.value
  // The stream reports that another has failed, or that all were forgotten.
  const latest = requests.find(isFailed)?.id
  useEffect(() => {
    let isWanted = true
    const filters: GroupsQuery = {
      ...(account && { account_id: account }),
      ...(operation && operation !== 'none' && { operation }),
      ...(status && { status }),
      ...(!showsOwn && { own: 'false' }),
    }
    api.call('control.requests.errors', { query: filters }).then(
      ({ errors }) =>
        isWanted &&
        setGroups(operation === 'none' ? errors.filter(({ operation: id }) => id === null) : errors),
      (error: unknown) => isWanted && setGroups(new Error(messageOf(error))),
    )
    return () => {
      isWanted = false
    }
  }, [api, account, operation, status, showsOwn, latest])
  if (groups instanceof Error) return <Failure error={groups} />
  if (groups === null) return <Loading />
  if (groups.length === 0)
    return (
      <Empty title="No errors">
        <p>Failed requests are listed here by operation and code, the latest first.</p>
      </Empty>
    )
  return (
    <div class="table error-groups">
      <ul>
        {groups.map(({ operation, method, status, code, count, last_at: lastAt, last_id: lastId }) => {
          const last = store.requests.get(lastId)
          return (
            <li key={`${operation} ${method} ${status} ${code}`} class="row">
              <span class="cell number">{count}×</span>
              <span class="cell status">
                <HttpStatus of={status} />
              </span>
              <span class="cell">
                <a
                  class="row-link"
                  href={hrefWith(router.path.value, query, {
                    group: '',
                    request: lastId,
                    operation: operation ?? 'none',
                    code: code ?? '',
                    status: String(status),
                    errors: '1',
                  })}
                >
                  {operation ?? 'no operation'} <code>{code}</code>
                </a>
              </span>
              <span class="cell last-message quiet">
                <bdi>{last && (last.said?.message ?? last.path)}</bdi>
              </span>
              <span class="cell time quiet">
                <Time at={lastAt} />
              </span>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
