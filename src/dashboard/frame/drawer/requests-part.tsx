import { useMemo, useState } from 'preact/hooks'
import { HttpStatus } from '../../components/http-status.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { span, Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import { isOwn, RequestFacts, shortPath } from '../../screens/requests/facts.ts'
import { RequestMarks } from '../../screens/requests/request-marks.tsx'
import type { JournalRequest, Project } from '../../store/store.ts'
import type { Subject } from './subject.ts'

/** Requests that are listed: the screen of requests has all. */
const LISTED = 50

/** The last requests about what is on the screen, the newest first. */
export function RequestsPart({ subject }: { subject: Subject | null }) {
  const { store } = useDashboard()
  const [facts] = useState(() => new RequestFacts())
  const requests = store.requests.open().list.value
  const projects = store.projects.open().list.value
  const about = useMemo(
    () => requests.filter((request) => isAbout(request, subject, facts, projects)),
    [requests, projects, subject?.id, facts],
  )
  const shown = about.filter((request) => !isOwn(request)).slice(0, LISTED)
  const hidden = about.length - about.filter((request) => !isOwn(request)).length
  const query = new URLSearchParams({ ...(subject && { q: subject.id }), ...(hidden > 0 && { own: '1' }) })
  return (
    <div class="drawer-body">
      <Loaded of={store.requests}>
        {() => (
          <>
            {shown.length > 0 && (
              <ul class="drawer-requests">
                {shown.map((request) => (
                  <RequestLine key={request.id} request={request} />
                ))}
              </ul>
            )}
            <p class="quiet">
              {shown.length === 0 && 'No request yet. '}
              {hidden > 0 && `${hidden} of this page and of the command line are hidden. `}
              <a href={`/dashboard/requests?${query}`}>All requests</a>
            </p>
          </>
        )}
      </Loaded>
    </div>
  )
}

function RequestLine({ request }: { request: JournalRequest }) {
  const { id, method, path, operation, status, ms, at } = request
  return (
    <li class="row">
      <HttpStatus of={status} />
      <span class="method">{method}</span>
      <span class="cell path">
        <a class="row-link" href={`/dashboard/requests?request=${id}`}>
          <bdi title={path}>{shortPath(path)}</bdi>
        </a>
        <RequestMarks request={request} />
      </span>
      <span class="cell operation quiet">{operation}</span>
      <span class="number quiet">{span(ms)}</span>
      <span class="cell quiet">
        <Time at={at} />
      </span>
    </li>
  )
}

/** Reports whether a request is about what is on the screen; without that, each is. */
function isAbout(
  request: JournalRequest,
  subject: Subject | null,
  facts: RequestFacts,
  projects: readonly Project[],
): boolean {
  if (subject === null) return true
  const { kind, id } = subject
  if (kind === 'request') return request.id === id
  if (kind === 'server') return facts.serverId(request, projects) === id
  const { named, made } = facts.of(request)
  return named.includes(id) || made.includes(id)
}
