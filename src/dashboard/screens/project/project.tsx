import { useCallback } from 'preact/hooks'
import { CrashNotice, Warnings, WorkerList } from '../../components/app-parts.tsx'
import { Button } from '../../components/button.tsx'
import { Address, Id, ServerLink } from '../../components/copy.tsx'
import { LogView } from '../../components/log-view.tsx'
import { Empty, Failure, Loading, ScreenPage, Tabs } from '../../components/page.tsx'
import { type Phase, PhaseBar } from '../../components/state.tsx'
import { span } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../router.ts'
import type { Project } from '../../store/store.ts'
import { ProjectMenu, ProjectState } from '../projects.tsx'
import { FilesView } from '../server/files.tsx'
import { MissingVariables, VariablesTab } from './variables.tsx'

/** A project: how far its bring-up is, its log, its files and its variables. */
export default function ProjectScreen({ params }: ScreenProps) {
  const { api, store, router } = useDashboard()
  const { projectId = '', tab = '' } = params
  const projects = store.projects.open()
  const project = projects.get(projectId)
  const state = projects.state.value
  if (!project) {
    if (state instanceof Error) return <Failure error={state} retry={() => projects.load()} />
    if (state !== 'ready') return <Loading />
    return (
      <ScreenPage title="No such project">
        <Empty title="This project is not there">
          <p>
            It was deleted, or belongs to another account. <a href="/dashboard/projects">All projects</a>
          </p>
        </Empty>
      </ScreenPage>
    )
  }
  const base = `/dashboard/projects/${project.id}`
  return (
    <ScreenPage
      title={project.name}
      isFull
      above={
        <>
          <a href="/dashboard/projects">Projects</a> / <ServerLink id={project.server_id} />
        </>
      }
      beside={
        <>
          <ProjectState project={project} />
          <span class="chip">{project.visibility}</span>
          <Id id={project.id} />
          {project.url !== null && !project.port_taken && <Address url={project.url} />}
        </>
      }
      actions={
        <>
          {project.url !== null && !project.port_taken && (
            <a class="button plain" href={project.url} target="_blank" rel="noopener noreferrer">
              Open the app
            </a>
          )}
          {project.init_phase === 'failed' && (
            <Button
              icon="play"
              look="primary"
              onClick={() => api.call('projects.init', { params: { projectId: project.id } })}
            >
              Bring up again
            </Button>
          )}
          {project.init_phase === 'ready' && (
            <Button
              icon="restart"
              onClick={() => api.call('projects.restart', { params: { projectId: project.id } })}
            >
              Restart
            </Button>
          )}
          <ProjectMenu project={project} onDeleted={() => router.go('/dashboard/projects')} />
        </>
      }
    >
      <Phases project={project} />
      <CrashNotice crash={project.crash} remedy="fix it, then restart it" />
      {/* A later bring-up that failed is reported above. */}
      {project.failed_change && project.init_phase !== 'failed' && (
        <p class="notice" role="status">
          The last change did not come up: {project.failed_change.reason} The version before runs.
        </p>
      )}
      {project.port_taken && (
        <p class="notice failure" role="alert">
          Another program has the port of this project, so <code>{project.url}</code> leads there. End that
          program, and the project answers there within a second. Until then{' '}
          <code>{project.slug}.localhost</code> on berth's own port leads to the project.
        </p>
      )}
      <Warnings warnings={project.warnings} />
      <MissingVariables project={project} />
      <Detected project={project} />
      <WorkerList workers={project.workers} />
      <Tabs
        label="Parts of the project"
        here={tab === '' ? base : `${base}/${tab}`}
        tabs={[
          { href: base, label: 'Log' },
          { href: `${base}/files`, label: 'Files' },
          { href: `${base}/variables`, label: 'Variables' },
        ]}
      />
      {tab === 'variables' ? (
        <VariablesTab project={project} />
      ) : tab === 'files' ? (
        <FilesView server={{ id: project.server_id }} root={`projects/${project.slug}`} />
      ) : project.init_phase === null ? (
        <NoCode project={project} />
      ) : (
        <ProjectLog projectId={project.id} />
      )}
    </ScreenPage>
  )
}

/** What a project shows that was made without code. */
const NoCode = ({ project }: { project: Project }) => (
  <Empty title="No code was brought up yet">
    <p>The log begins when the app is first installed and started. Send it a directory:</p>
    <p class="quiet">
      <code>berth projects push --project {project.id}</code>
    </p>
  </Empty>
)

function ProjectLog({ projectId }: { projectId: string }) {
  const { api } = useDashboard()
  const open = useCallback(
    (tail: number, signal: AbortSignal) =>
      api.stream('projects.logs', { params: { projectId }, query: { tail }, signal }),
    [api, projectId],
  )
  return <LogView label="Log of the project" open={open} />
}

/** The phases of a bring-up that everybody passes, in order. */
const PHASES = ['fetch', 'install', 'build', 'start', 'healthcheck'] as const

/** What a phase does. */
const TITLES: Readonly<Record<string, string>> = {
  fetch: 'Gets the code',
  install: 'Finds out how the app starts, and installs its packages',
  build: 'Builds the app',
  variables: 'Waits for variables that the app does not start without',
  start: 'Starts the app',
  healthcheck: 'Asks the app until it responds',
}

/** That a phase failed. */
const FAILURES: Readonly<Record<string, string>> = {
  fetch: 'The code could not be fetched',
  install: 'The installation failed',
  build: 'The build failed',
  start: 'The app could not be started',
  healthcheck: 'The app did not respond',
}

type Entry = NonNullable<Project['init_phases']>[number]

/** How far the last bring-up of a project is, how long each of its phases took, and which one failed. */
function Phases({ project }: { project: Project }) {
  const { init_phase: now, init_phases: entries = [], app } = project
  if (now === null) return null
  const phases = phasesOf(entries, now, app?.build === null)
  const [first] = entries
  const last = entries.at(-1)
  const cameUpLater = entries.some(({ phase }) => phase === 'failed')
  const failed = phases.find(({ state }) => state === 'failed')
  return (
    <section class="bring-up" aria-label="Bring-up">
      <PhaseBar label="Phases of the bring-up" phases={phases} />
      {first && last && now === 'ready' && (
        <p class="quiet">
          {cameUpLater
            ? 'It failed at first, and came up after a later change.'
            : `Ready after ${span(Date.parse(last.began_at) - Date.parse(first.began_at))}.`}
        </p>
      )}
      {now === 'failed' && (
        <p class="failed-in">
          {failed ? FAILURES[failed.name] : 'It failed'}: the log says why.
          {project.runtime_status === 'running' && ' The version before runs.'}
        </p>
      )}
    </section>
  )
}

/** Returns the phases of a bring-up with their states and times. */
function phasesOf(entries: readonly Entry[], now: string, hasNoBuild: boolean): Phase[] {
  const waited = entries.some(({ phase }) => phase === 'awaiting_secrets')
  const names: readonly string[] = waited
    ? PHASES.flatMap((name) => (name === (hasNoBuild ? 'start' : 'build') ? ['variables', name] : [name]))
    : PHASES
  const seen = new Map<string, { begin: number | null; end: number | null }>()
  for (const [index, { phase, began_at: begin }] of entries.entries()) {
    const name = phase === 'awaiting_secrets' ? 'variables' : phase
    const next = entries[index + 1]
    // How long an attempt took that failed is not how long the app took that is up now.
    const isOver = next?.phase === 'failed' && now === 'ready'
    seen.set(name, {
      begin: isOver ? null : Date.parse(begin),
      end: next ? Date.parse(next.began_at) : null,
    })
  }
  const open = now === 'awaiting_secrets' ? 'variables' : now
  const failed = now === 'failed' ? nameOf(entries.at(-2)) : null
  const at = Math.max(...names.map((name, index) => (seen.has(name) ? index : -1)))
  return names.map((name, index) => {
    const times = seen.get(name)
    const common = { name, title: TITLES[name] ?? name, begin: times?.begin ?? null, end: times?.end ?? null }
    if (name === failed) return { ...common, state: 'failed' }
    if (name === open) return { ...common, state: name === 'variables' ? 'waiting' : 'current' }
    if (name === 'build' && hasNoBuild) return { ...common, state: 'skipped' }
    if (times) return { ...common, state: 'done' }
    return { ...common, state: index < at || now === 'ready' ? 'skipped' : 'pending' }
  })
}

const nameOf = (entry: Entry | undefined): string | null =>
  entry ? (entry.phase === 'awaiting_secrets' ? 'variables' : entry.phase) : null

/** What berth has found out about the app, and by which of its files. */
function Detected({ project: { app } }: { project: Project }) {
  if (!app) return null
  const { kind, evidence, directory, serves, install, build, release, start, health } = app
  const files = [...new Set(evidence.map(({ file }) => file))]
  return (
    <details class="detected">
      <summary>
        <strong>{kind}</strong>
        {files.length > 0 && (
          <span class="quiet">
            {' '}
            by <bdi>{files.join(', ')}</bdi>
          </span>
        )}
      </summary>
      <dl class="facts">
        {directory !== '.' && (
          <>
            <dt>Directory</dt>
            <dd>
              <code>{directory}</code>
            </dd>
          </>
        )}
        <Command name="Install" command={install} />
        <Command name="Build" command={build} />
        {release !== null && <Command name="Release" command={release} />}
        {serves === null ? (
          <Command name="Start" command={start} />
        ) : (
          <>
            <dt>Start</dt>
            <dd>
              berth serves the files of <code>{serves}</code>
            </dd>
          </>
        )}
        <dt>Health</dt>
        <dd>
          <code>{health}</code> responds with a status below 500
        </dd>
      </dl>
      <p class="quiet">
        A <code>berth.json</code> in the code changes any of it.{' '}
        <a href="/docs/guide/apps">How apps are detected</a>
      </p>
    </details>
  )
}

const Command = ({ name, command }: { name: string; command: string | null }) => (
  <>
    <dt>{name}</dt>
    <dd>{command === null ? <span class="quiet">nothing to do</span> : <code>{command}</code>}</dd>
  </>
)
