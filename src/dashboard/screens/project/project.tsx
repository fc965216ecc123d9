import { useCallback } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Address, Id, serverName } from '../../components/copy.tsx'
import { CrashNotice } from '../../components/crash-notice.tsx'
import { Empty } from '../../components/empty.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { LogView } from '../../components/log/log-view.tsx'
import { Page } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Warnings } from '../../components/warnings.tsx'
import { Workers } from '../../components/workers.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../routing/route.ts'
import type { Project as ProjectValue } from '../../store/store.ts'
import { ProjectMenu } from '../projects/project-menu.tsx'
import { ProjectState } from '../projects/project-state.tsx'
import { Files } from '../server/files/files.tsx'
import { Detected } from './detected.tsx'
import { MissingVariables } from './missing-variables.tsx'
import { Phases } from './phases.tsx'
import { Variables } from './variables.tsx'

/** A project: how far its bring-up is, its log, its files and its variables. */
export default function Project({ params }: ScreenProps) {
  const { api, store, router } = useDashboard()
  const { projectId = '', tab = '' } = params
  const projects = store.projects.open()
  const project = projects.get(projectId)
  const state = projects.state.value
  if (!project) {
    if (state instanceof Error) return <Failure error={state} retry={() => projects.load()} />
    if (state !== 'ready') return <Loading />
    return (
      <Page title="No such project">
        <Empty title="This project is not there">
          <p>
            It was deleted, or belongs to another account. <a href="/dashboard/projects">All projects</a>
          </p>
        </Empty>
      </Page>
    )
  }
  const base = `/dashboard/projects/${project.id}`
  const server = store.servers.open().get(project.server_id)
  return (
    <Page
      title={project.name}
      isFull
      above={
        <>
          <a href="/dashboard/projects">Projects</a> /{' '}
          <a href={`/dashboard/servers/${project.server_id}`}>
            <bdi>{serverName(project.server_id, server?.task)}</bdi>
          </a>
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
      <CrashNotice crash={project.crash} remedy="mend it, then restart it" />
      {/* A bring-up that failed later is told above. */}
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
      <Workers workers={project.workers} />
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
        <Variables project={project} />
      ) : tab === 'files' ? (
        <Files server={{ id: project.server_id }} root={`projects/${project.slug}`} />
      ) : project.init_phase === null ? (
        <NoCode project={project} />
      ) : (
        <ProjectLog projectId={project.id} />
      )}
    </Page>
  )
}

/** What a project shows that was made without code. */
const NoCode = ({ project }: { project: ProjectValue }) => (
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
