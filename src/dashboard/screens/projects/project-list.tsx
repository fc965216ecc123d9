import { Id, serverName } from '../../components/copy.tsx'
import { Empty } from '../../components/empty.tsx'
import { Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'
import { ProjectMenu } from './project-menu.tsx'
import { ProjectState } from './project-state.tsx'

/** Properties of a list of projects. */
interface ProjectListProps {
  projects: readonly Project[]
  /** Whether all are of one server, which is then not named. */
  isOfServer?: boolean
}

/** A list of projects, those that match the search of the address. */
export function ProjectList({ projects, isOfServer = false }: ProjectListProps) {
  const { router } = useDashboard()
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const shown = projects.filter((project) => matches(project, sought))
  if (shown.length === 0) return <Empty title={`No project matches “${sought}”`} />
  return (
    <div class={`table projects${isOfServer ? ' of-server' : ''}`}>
      <div class="row head" aria-hidden="true">
        <span>Project</span>
        <span>State</span>
        <span>Address</span>
        {!isOfServer && <span>Server</span>}
        <span>Visibility</span>
        <span>Changed</span>
        <span />
      </div>
      <VirtualList items={shown} rowHeight={48} keyOf={({ id }) => id} label="Projects">
        {(project) => <ProjectRow project={project} isOfServer={isOfServer} />}
      </VirtualList>
    </div>
  )
}

const matches = ({ id, name, slug, url, runtime_status: state }: Project, sought: string): boolean =>
  `${id} ${name} ${slug} ${url ?? ''} ${state}`.toLowerCase().includes(sought)

function ProjectRow({ project, isOfServer }: { project: Project; isOfServer: boolean }) {
  const { store } = useDashboard()
  const { id, name, url, server_id: serverId, visibility, updated_at: updatedAt } = project
  const server = store.servers.open().get(serverId)
  return (
    <div class="row">
      <span class="cell main">
        <a class="row-link" href={`/dashboard/projects/${id}`}>
          <bdi>{name}</bdi>
        </a>
        <Id id={id} />
      </span>
      <span class="cell">
        <ProjectState project={project} />
      </span>
      <span class="cell">
        {url === null ? (
          <span class="quiet">not public</span>
        ) : (
          <a href={url} target="_blank" rel="noopener noreferrer">
            {url.replace(/^https?:\/\/|\/$/g, '')}
          </a>
        )}
      </span>
      {!isOfServer && (
        <span class="cell">
          <a href={`/dashboard/servers/${serverId}`}>
            <bdi>{serverName(serverId, server?.task)}</bdi>
          </a>
        </span>
      )}
      <span class="cell quiet">{visibility}</span>
      <span class="cell quiet">
        <Time at={updatedAt} />
      </span>
      <span class="cell end">
        <ProjectMenu project={project} />
      </span>
    </div>
  )
}
