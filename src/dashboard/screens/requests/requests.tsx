import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { HttpStatus } from '../../components/http-status.tsx'
import { Icon } from '../../components/icon.tsx'
import { HoldButton, useHeld } from '../../components/live-list.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { span, Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { Detail } from './detail.tsx'
import { ErrorGroups } from './error-groups.tsx'
import { isFailed, RequestFacts, shortPath } from './facts.ts'
import { filterRequests, hrefWith, isFiltered, scopeOf } from './filter.ts'
import { Filters } from './filters.tsx'
import { Who } from './who.tsx'

/** Requests to the API as they come, the newest at the top; one of them beside the list. */
export default function Requests() {
  const { store, router, shortcuts, api, notices } = useDashboard()
  const query = router.query.value
  const selected = query.get('request') ?? ''
  const isGrouped = query.get('group') === 'errors'
  const requests = store.requests.open().list.value
  const projects = store.projects.open().list.value
  const scope = scopeOf(query)
  const [facts] = useState(() => new RequestFacts())
  const shown = useMemo(
    () => filterRequests({ requests, projects, facts }, query),
    [requests, projects, scope],
  )
  const held = useHeld(shown, idOf, scope)
  const at = held.shown.findIndex(({ id }) => id === selected)
  const list = useRef(held.shown)
  list.current = held.shown
  useEffect(() => {
    // Reads the address at each key: the next may come before the page is drawn again.
    const select = (step: number): void => {
      const at = list.current.findIndex(({ id }) => id === router.query.peek().get('request'))
      const request = list.current[Math.max(0, Math.min(list.current.length - 1, at + step))]
      if (request) router.setQuery('request', request.id)
    }
    return shortcuts.add(
      { keys: 'j', label: 'Next request', run: () => select(1) },
      { keys: 'k', label: 'Previous request', run: () => select(-1) },
      { keys: 'Escape', label: 'Close the request', run: () => router.setQuery('request', '') },
    )
  }, [router, shortcuts])
  const clear = async (): Promise<void> => {
    const { deleted } = await api.call('control.requests.clear')
    store.requests.clear()
    router.setQuery('request', '')
    notices.done(`${deleted} requests were removed from the journal.`)
  }
  const failures = useMemo(() => shown.filter(isFailed).length, [shown])
  return (
    <Page
      title="Requests"
      isFull
      actions={
        <>
          <Search label="Search requests" />
          {!isGrouped && <HoldButton held={held} />}
          <Button icon="trash" onClick={clear}>
            Clear
          </Button>
        </>
      }
    >
      <Tabs
        label="Views of the requests"
        here={hrefWith(query, { group: isGrouped ? 'errors' : '' })}
        tabs={[
          { href: hrefWith(query, { group: '' }), label: 'All' },
          { href: hrefWith(query, { group: 'errors' }), label: 'Errors by cause', count: failures },
        ]}
      />
      <Filters />
      <Loaded of={store.requests}>
        {() => (
          <div class={`split${selected === '' ? '' : ' has-detail'}`}>
            {isGrouped ? (
              <ErrorGroups requests={shown} />
            ) : held.shown.length === 0 ? (
              <Nothing isFiltered={isFiltered(query)} hasOwn={requests.length > 0} />
            ) : (
              <div class="table requests">
                <VirtualList
                  items={held.shown}
                  rowHeight={36}
                  keyOf={idOf}
                  label="Requests, the newest first"
                  edge="start"
                  isFollowing={!held.isHeld}
                  onFollow={held.onFollow}
                  current={at}
                >
                  {(request) => (
                    <RequestRow
                      request={request}
                      isCurrent={request.id === selected}
                      href={hrefWith(query, { request: request.id })}
                    />
                  )}
                </VirtualList>
              </div>
            )}
            {selected !== '' && <Detail key={selected} id={selected} />}
          </div>
        )}
      </Loaded>
    </Page>
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
  const { method, path, operation, status, ms, at, near_misses: misses, aborted } = request
  // The same element is not compared again, which is most of the work of scrolling.
  return useMemo(
    () => (
      <div class={`row${isCurrent ? ' current' : ''}`}>
        <span class="cell status">
          <HttpStatus of={status} />
        </span>
        <span class="cell method">{method}</span>
        <span class="cell path">
          <a class="row-link" href={href} aria-current={isCurrent ? 'true' : undefined}>
            <bdi title={path}>{shortPath(path)}</bdi>
          </a>
          {misses.length > 0 && (
            <span class="miss" title={misses[0]?.message}>
              <Icon name="warning" />
              <span class="visually-hidden">near miss</span>
            </span>
          )}
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
const Nothing = ({ isFiltered, hasOwn }: { isFiltered: boolean; hasOwn: boolean }) =>
  isFiltered ? (
    <Empty title="No request fits the filters">
      <p>
        <a href="/dashboard/requests">Show all</a>
      </p>
    </Empty>
  ) : (
    <Empty title="No requests yet">
      <p>Each request to the API appears here at once, with both bodies, and what it caused.</p>
      {hasOwn && (
        <p class="quiet">
          Those of this page and of the command line are hidden.{' '}
          <a href="/dashboard/requests?own=1">Show them</a>
        </p>
      )}
    </Empty>
  )
