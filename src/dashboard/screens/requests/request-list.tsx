import { useEffect, useMemo, useState } from 'preact/hooks'
import { Empty } from '../../components/empty.tsx'
import { HttpStatus } from '../../components/http-status.tsx'
import { type Held, useHeld } from '../../components/live-list.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { span, Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { Detail } from './detail.tsx'
import { RequestFacts, shortPath } from './facts.ts'
import { filterRequests, hrefWith, isFiltered, scopeOf } from './filter.ts'
import { RequestMarks } from './request-marks.tsx'
import { Who } from './who.tsx'

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
  const [facts] = useState(() => new RequestFacts())
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
