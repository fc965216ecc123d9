import { useMemo } from 'preact/hooks'
import { Icon, type IconName } from '../../components/button.tsx'
import { serverLabel } from '../../components/copy.tsx'
import { HttpStatus } from '../../components/http.tsx'
import { State } from '../../components/state.tsx'
import { span, Time, TimeOfDay } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import { matchRoute } from '../../router.ts'
import type { Delivery } from '../../store/store.ts'
import { RequestMarks, shortPath } from '../requests/facts.tsx'
import { headline, outcome, SPEAKERS } from '../task/entry-view.tsx'
import { type EntrySubject, isThing, type TreeEntry } from './tree.ts'

const ICONS: Readonly<Record<EntrySubject['kind'], IconName>> = {
  request: 'requests',
  event: 'event',
  delivery: 'webhooks',
  server: 'servers',
  project: 'projects',
  task: 'tasks',
  build: 'builds',
  execution: 'terminal',
  terminal: 'terminal',
  deployment: 'open',
  step: 'tasks',
}

const iconOf = (subject: EntrySubject): IconName =>
  subject.kind === 'step' && subject.value.kind === 'tool'
    ? subject.value.tool === 'run'
      ? 'terminal'
      : 'file'
    : ICONS[subject.kind]

/** Most levels that are indented. */
const LEVELS = 4

/** Milliseconds from which on the line of an entry says when something last happened with it. */
const LATER_MS = 10_000

/** Properties of an entry's line. */
interface EntryRowProps {
  entry: TreeEntry
  level: number
  isOld?: boolean
  /** Whether the agent's steps are shown below a task; undefined if they cannot be shown here. */
  isOpen?: boolean | undefined
  /** Shows or hides the agent's steps of a task. */
  onToggle?: ((taskId: string, serverId: string) => void) | undefined
}

/** An entry in a line: its time, its subject and its outcome, with a link to its own page. */
export function EntryRow({ entry, level, isOld, isOpen, onToggle }: EntryRowProps) {
  const { router, store } = useDashboard()
  const { subject, at, serverId } = entry
  const href = pathsOf(entry).find((path) => matchRoute(router.routes, path.split('?')[0] ?? '') !== null)
  const server = serverId === null ? undefined : store.servers.get(serverId)
  const label = serverId === null ? '' : serverLabel(serverId, server?.task)
  const look = `entry level-${Math.min(level, LEVELS)} ${entry.isError ? 'bad' : ''} ${isOld ? 'old' : ''}`
  // Not by the class of the row: Chromium was seen to keep the style inside an element whose class changes.
  const style = {
    '--level': Math.min(level, LEVELS),
    '--icon-color': entry.isError ? 'var(--color-failed)' : 'var(--color-muted)',
    '--words-color': isOld ? 'var(--color-muted)' : 'inherit',
  }
  // The same element is not compared again, which is most of the work of scrolling.
  return useMemo(
    () => (
      <div class={look}>
        <span class="when">
          <TimeOfDay at={at} />
        </span>
        <span class="what" style={style}>
          {subject.kind === 'task' && onToggle && serverId !== null ? (
            <button
              type="button"
              class={`fold ${isOpen ? 'open' : ''}`}
              aria-expanded={isOpen === true}
              aria-label={`What the agent did: ${subject.value.name}`}
              title="What the agent did"
              onClick={() => onToggle(subject.value.id, serverId)}
            >
              <Icon name="right" />
            </button>
          ) : (
            <Icon name={iconOf(subject)} />
          )}
          {href === undefined ? (
            <span class="text">
              <Words subject={subject} />
            </span>
          ) : (
            <a class="text" href={href}>
              <Words subject={subject} />
            </a>
          )}
        </span>
        <span class="outcome">
          {subject.kind === 'request' && <RequestMarks request={subject.value} />}
          <Outcome subject={subject} />
        </span>
        <span class="where quiet">
          {level === 0 && entry.last - at >= LATER_MS && (
            <span title="It is up here because something has happened with it since">
              last at <TimeOfDay at={entry.last} />{' '}
            </span>
          )}
          {level === 0 && serverId !== null && subject.kind !== 'server' && (
            <bdi title={serverId}>{label}</bdi>
          )}
        </span>
      </div>
    ),
    [entry, look, isOpen, onToggle, href, label],
  )
}

/** Describes the subject of an entry. */
function Words({ subject }: { subject: EntrySubject }) {
  if (isThing(subject)) {
    const { type, name, reason } = subject.value
    return (
      <>
        <span class="kind">{type}</span> <bdi>{name}</bdi>
        {reason !== null && <bdi class="quiet"> {reason}</bdi>}
      </>
    )
  }
  switch (subject.kind) {
    case 'request': {
      const { method, path, operation, said } = subject.value
      return (
        <>
          <span class="method">{method}</span> <bdi title={path}>{shortPath(path)}</bdi>{' '}
          <span class="quiet">{said?.message?.slice(0, 300) ?? operation}</span>
        </>
      )
    }
    case 'event':
      return (
        <>
          <span class="kind">event</span> {subject.value.event}
        </>
      )
    case 'step': {
      const step = subject.value
      if (step.kind === 'tool') return <code>{headline(step)}</code>
      return (
        <>
          <span class="kind">{SPEAKERS[step.kind]}</span> <bdi>{step.text.slice(0, 300)}</bdi>
        </>
      )
    }
    case 'delivery': {
      const { url, attempts, status, next_attempt_at: nextAt } = subject.value
      const last = attempts.at(-1)
      return (
        <>
          <span class="kind">delivery</span> <bdi>{url}</bdi>{' '}
          <span class="quiet">
            {attempts.length > 1 && `${attempts.length} attempts, `}
            {nextAt !== null && status !== 'delivered' && attempts.length > 0 && (
              <>
                next <Time at={nextAt} isDue />,{' '}
              </>
            )}
            {last && <bdi>{saidBy(last)}</bdi>}
          </span>
        </>
      )
    }
  }
}

/** Describes the outcome of an entry. */
function Outcome({ subject }: { subject: EntrySubject }) {
  if (isThing(subject)) {
    const { state, steps } = subject.value
    const past = steps.slice(0, -1).map((step) => step.state.replaceAll('_', ' '))
    return (
      <>
        {past.length > 0 && <span class="past quiet">{past.slice(-3).join(' › ')} ›</span>}{' '}
        <State of={state} />
      </>
    )
  }
  switch (subject.kind) {
    case 'request':
      return (
        <>
          <HttpStatus of={subject.value.status} /> <span class="ms quiet">{span(subject.value.ms)}</span>
        </>
      )
    case 'delivery': {
      const { status, attempts } = subject.value
      const last = attempts.at(-1)
      return (
        <>
          {last && <HttpStatus of={last.status} />} <State of={status} />
        </>
      )
    }
    case 'step':
      return subject.value.kind === 'tool' ? <span class="quiet">{outcome(subject.value)}</span> : null
    case 'event':
      return null
  }
}

/** Returns the response of a receiver, or why it was not reached. */
const saidBy = ({ error, response }: Delivery['attempts'][number]): string =>
  error ?? (response === null ? 'no response' : response.body.slice(0, 200))

/** Returns the pages that may show an entry, the best first. */
function pathsOf({ subject, serverId }: TreeEntry): string[] {
  const server = serverId === null ? [] : [`/dashboard/servers/${serverId}`]
  switch (subject.kind) {
    case 'request':
      return [`/dashboard/requests?request=${encodeURIComponent(subject.value.id)}`]
    case 'delivery':
      return [`/dashboard/webhooks?delivery=${subject.value.id}`]
    case 'step':
      return []
    case 'event':
      return [`/dashboard/webhooks?event_id=${subject.value.id}`, ...server]
    case 'terminal':
      return [`/dashboard/servers/${serverId}?terminal=${subject.value.id}`]
    case 'execution':
      return server.flatMap((path) => [`${path}/executions/${subject.value.id}`, path])
    case 'server':
    case 'deployment':
      return server
    default:
      return [`/dashboard/${subject.kind}s/${subject.value.id}`, ...server]
  }
}
