import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from '../components/button.tsx'
import { CopyButton } from '../components/copy.tsx'
import { CommandLines, HttpStatus } from '../components/http.tsx'
import { JsonView } from '../components/json-view.tsx'
import { Loaded, Loading } from '../components/page.tsx'
import { span, Time } from '../components/time.tsx'
import { useDashboard } from '../dashboard.ts'
import { isOwn, RequestMarks, RequestReader, shortPath } from '../screens/requests/facts.tsx'
import { TerminalsView } from '../screens/server/terminals.tsx'
import { DRAWER_PARTS, type DrawerPart, LEAST_HEIGHT } from '../store/drawer.ts'
import type { JournalRequest, Project } from '../store/store.ts'
import { type DrawerSubject, subjectAt } from './drawer-subject.ts'

const LABELS: Readonly<Record<DrawerPart, string>> = {
  requests: 'Requests',
  shell: 'Shell',
  object: 'Object',
}

/** Pixels by which a key changes the height. */
const STEP = 40

/**
 * The part below every screen: the last requests about its object, a shell on its server, and the object itself. The
 * screen gives way to it, so that it covers nothing.
 */
export function DrawerSheet() {
  const dashboard = useDashboard()
  const { drawer, router, context, shortcuts } = dashboard
  const place = useRef<HTMLElement>(null)
  const height = drawer.height.value
  const path = router.path.value
  const address = drawer.about.value ?? `${path}?${router.query.value}`
  const subject = subjectAt(dashboard, address)
  const parts = DRAWER_PARTS.filter(
    (one) => (one !== 'requests' || context.is_admin) && (one !== 'object' || subject !== null),
  )
  const part = parts.find((one) => one === drawer.part.value) ?? parts[0]
  useEffect(() => {
    // What had the focus is still in view, though the screen is lower now.
    document.activeElement?.scrollIntoView({ block: 'nearest' })
    place.current?.querySelector<HTMLElement>('.drawer-tab[aria-pressed="true"]')?.focus()
    return shortcuts.add({ keys: 'Escape', label: 'Close the drawer', run: () => drawer.close() })
  }, [drawer, shortcuts])
  useEffect(() => {
    const { style } = document.documentElement
    style.setProperty('--drawer-height', `${height}px`)
    return () => void style.removeProperty('--drawer-height')
  }, [height])
  return (
    <section
      ref={place}
      class="drawer"
      aria-label="Drawer"
      style={{ height: `${height}px` }}
      onKeyDown={(event) => {
        const isTerminal = event.target instanceof Element && event.target.closest('.xterm') !== null
        if (event.key !== 'Escape' || isTerminal || document.querySelector(':popover-open')) return
        event.preventDefault()
        drawer.close()
      }}
    >
      <Edge />
      <div class="drawer-head">
        {parts.map((one) => (
          <button
            key={one}
            type="button"
            class="drawer-tab"
            aria-pressed={one === part}
            onClick={() => drawer.show(one)}
          >
            {LABELS[one]}
          </button>
        ))}
        {subject && (
          <span class="drawer-about quiet">
            {subject.kind} <bdi>{subject.name || subject.id}</bdi>
          </span>
        )}
        <Button look="quiet" icon="close" label="Close the drawer" onClick={() => drawer.close()} />
      </div>
      {part === 'requests' ? (
        <RequestsPart subject={subject} />
      ) : part === 'object' && subject ? (
        <ObjectPart subject={subject} />
      ) : (
        <ShellPart serverId={subject?.serverId ?? null} />
      )}
    </section>
  )
}

/** The upper edge, which makes the drawer higher or lower: drawn, or by the arrow keys. */
function Edge() {
  const { drawer } = useDashboard()
  return (
    <hr
      class="drawer-edge"
      tabIndex={0}
      aria-label="Height of the drawer"
      aria-valuenow={drawer.height.value}
      aria-valuemin={LEAST_HEIGHT}
      aria-valuemax={Math.round(innerHeight * 0.75)}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowUp' ? STEP : event.key === 'ArrowDown' ? -STEP : 0
        if (step === 0) return
        event.preventDefault()
        drawer.resize(drawer.height.peek() + step)
      }}
      onPointerDown={({ currentTarget, pointerId }) => currentTarget.setPointerCapture(pointerId)}
      onPointerMove={({ currentTarget, pointerId, clientY }) => {
        if (currentTarget.hasPointerCapture(pointerId)) drawer.resize(innerHeight - clientY)
      }}
    />
  )
}

/** The object on the screen as the API gives it, and the lines that do the same. */
function ObjectPart({ subject }: { subject: DrawerSubject }) {
  return (
    <div class="drawer-body">
      <Loaded of={subject.source}>
        {() =>
          subject.value === undefined ? (
            <p class="quiet">
              There is no {subject.kind} <code>{subject.id}</code> any more.
            </p>
          ) : (
            <div class="drawer-object">
              <div class="drawer-json">
                <CopyButton text={() => JSON.stringify(subject.value, null, 2)} label="Copy the object" />
                <JsonView value={subject.value} />
              </div>
              <CommandLines berth={subject.berth} method="GET" path={subject.path} isOpen />
            </div>
          )
        }
      </Loaded>
    </div>
  )
}

/** Requests that are listed: the screen of requests has all. */
const LISTED = 50

/** The last requests about the object on the screen, the newest first. */
function RequestsPart({ subject }: { subject: DrawerSubject | null }) {
  const { store } = useDashboard()
  const [facts] = useState(() => new RequestReader())
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

/** Reports whether a request is about the object on the screen; without one, each is. */
function isAbout(
  request: JournalRequest,
  subject: DrawerSubject | null,
  facts: RequestReader,
  projects: readonly Project[],
): boolean {
  if (subject === null) return true
  const { kind, id } = subject
  if (kind === 'request') return request.id === id
  if (kind === 'server') return facts.serverId(request, projects) === id
  const { named, made } = facts.of(request)
  return named.includes(id) || made.includes(id)
}

/** The terminals of the server on the screen; without one, of a server that the person chooses. */
function ShellPart({ serverId }: { serverId: string | null }) {
  const { store } = useDashboard()
  const [chosen, choose] = useState('')
  const [terminal, setTerminal] = useState<string | null>(null)
  const servers = store.servers.open()
  const all = servers.list.value
  const server = servers.get(serverId ?? chosen) ?? (serverId === null ? all[0] : undefined)
  if (!server)
    return servers.state.value === 'loading' ? (
      <Loading />
    ) : (
      <p class="drawer-body quiet">
        There is no server to open a shell on. <a href="/dashboard/servers">Servers</a>
      </p>
    )
  return (
    <>
      {serverId === null && all.length > 1 && (
        <label class="drawer-server">
          <span class="quiet">on</span>
          <select
            aria-label="Server of the shell"
            value={server.id}
            onChange={({ currentTarget }) => choose(currentTarget.value)}
          >
            {all.map(({ id, task }) => (
              <option key={id} value={id}>
                {task || id}
              </option>
            ))}
          </select>
        </label>
      )}
      <TerminalsView key={server.id} server={server} shown={{ id: terminal, show: setTerminal }} />
    </>
  )
}
