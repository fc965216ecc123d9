import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../route-client/client.ts'
import { Button, Menu, type MenuItem } from '../components/button.tsx'
import { Id, ServerLink } from '../components/copy.tsx'
import { Confirm, FormDialog } from '../components/dialog.tsx'
import { SelectField, ServerField, TextField } from '../components/field.tsx'
import { Search } from '../components/filters.tsx'
import { CommandLines, shellQuoted } from '../components/http.tsx'
import { Empty, Loaded, ScreenPage } from '../components/page.tsx'
import { State } from '../components/state.tsx'
import { Time } from '../components/time.tsx'
import { VirtualList } from '../components/virtual-list.tsx'
import { useDashboard } from '../dashboard.ts'
import type { Project } from '../store/store.ts'

/** All projects of the account. */
export default function ProjectsScreen() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const create = (
    <Button isNew look="primary" icon="plus" onClick={() => setCreating(true)}>
      Create a project
    </Button>
  )
  return (
    <ScreenPage
      title="Projects"
      isFull
      actions={
        store.projects.list.value.length > 0 && (
          <>
            <Search label="Search projects" />
            {create}
          </>
        )
      }
    >
      <Loaded of={store.projects}>
        {(projects) =>
          projects.length === 0 ? (
            <Empty title="No projects yet">
              <p>
                A project is an app with a URL: from a template, a repository, or a directory that you send.
              </p>
              <p>{create}</p>
              <p class="quiet">
                <code>berth projects push</code> sends the directory that it is called in.
              </p>
            </Empty>
          ) : (
            <ProjectList projects={projects} />
          )
        }
      </Loaded>
      {isCreating && <CreateProject onClose={() => setCreating(false)} />}
    </ScreenPage>
  )
}

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
  const { id, name, url, server_id: serverId, visibility, updated_at: updatedAt } = project
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
          <ServerLink id={serverId} />
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

type Template = ResponseOf<'templates.list'>['templates'][number]

/** The source of a new project's code. */
type Origin = 'template' | 'git' | 'blank'

/** Asks for the server, the code and the name of a project, creates it and opens its log. */
export function CreateProject({ onClose, serverId }: { onClose: () => void; serverId?: string }) {
  const dashboard = useDashboard()
  const { api, store, router, notices } = dashboard
  const servers = store.servers.open().list.value
  const [chosenServer, setServer] = useState(serverId ?? '')
  const [templates, setTemplates] = useState<readonly Template[]>([])
  const [origin, setOrigin] = useState<Origin>('template')
  const [template, setTemplate] = useState('static-site')
  const [url, setUrl] = useState('')
  const [directory, setDirectory] = useState('')
  const [name, setName] = useState('')
  useEffect(() => {
    void notices.attempt(async () => setTemplates((await api.call('templates.list')).templates))
  }, [api, notices])
  const source =
    origin === 'template'
      ? { type: 'template' as const, template }
      : origin === 'git'
        ? { type: 'git' as const, url, ...(directory !== '' && { directory }) }
        : { type: 'blank' as const }
  const body = { source, ...(name !== '' && { name }), visibility: 'public' as const }
  const server = chosenServer || servers[0]?.id
  const create = async (): Promise<void> => {
    const on = server ?? (await api.call('servers.create', { body: { task: name || 'projects' } })).id
    const project = await api.call('projects.create', { params: { serverId: on }, body })
    store.projects.add(project)
    router.go(`/dashboard/projects/${project.id}`)
  }
  return (
    <FormDialog
      title="Create a project"
      action="Create"
      onSubmit={create}
      onClose={onClose}
      commands={
        server !== undefined && (
          <CommandLines
            berth={`berth projects create --server ${server}${name === '' ? '' : ` --name ${shellQuoted(name)}`}${origin === 'template' ? ` --template ${template}` : ''}${origin === 'git' ? ` --git ${shellQuoted(url)}${directory === '' ? '' : ` --directory ${shellQuoted(directory)}`}` : ''} --public`}
            method="POST"
            path={`/servers/${server}/projects`}
            body={body}
          />
        )
      }
    >
      <fieldset class="choice">
        <legend>Code</legend>
        {(
          [
            ['template', 'from a template'],
            ['git', 'from a repository'],
            ['blank', 'none yet'],
          ] as const
        ).map(([one, label]) => (
          <label key={one}>
            <input type="radio" name="origin" checked={origin === one} onChange={() => setOrigin(one)} />
            {label}
          </label>
        ))}
      </fieldset>
      {origin === 'template' && (
        <SelectField
          name="source.template"
          label="Template"
          value={template}
          onValue={setTemplate}
          choices={templates.map(({ id, label }) => ({ value: id, label }))}
          hint={templates.find(({ id }) => id === template)?.description}
        />
      )}
      {origin === 'git' && (
        <TextField
          name="source.url"
          label="Address of the repository"
          value={url}
          onValue={setUrl}
          isRequired
          placeholder="https://example.com/me/app.git"
        />
      )}
      {origin === 'git' && (
        <TextField
          name="source.directory"
          label="Directory of the app"
          value={directory}
          onValue={setDirectory}
          placeholder="berth finds it by default"
        />
      )}
      <TextField name="name" label="Name" value={name} onValue={setName} placeholder="two words by default" />
      <ServerField value={server ?? ''} onValue={setServer}>
        <p class="quiet">There is no server yet: one is created.</p>
      </ServerField>
    </FormDialog>
  )
}

/** The actions on a project. */
export function ProjectMenu({ project, onDeleted }: { project: Project; onDeleted?: () => void }) {
  const { api, notices, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const { id, name, visibility, init_phase: phase } = project
  const params = { projectId: id }
  const other = visibility === 'public' ? 'private' : 'public'
  const items: MenuItem[] = [
    {
      label: 'Restart the app',
      icon: 'restart',
      run: async () => {
        await api.call('projects.restart', { params })
        notices.done(`The app of ${name} starts again.`, {
          label: 'Show it',
          href: `/dashboard/projects/${id}`,
        })
      },
    },
    ...(phase === null
      ? []
      : [
          {
            label: 'Bring up again',
            icon: 'play' as const,
            run: () => api.call('projects.init', { params }),
          },
        ]),
    {
      label: `Make it ${other}`,
      icon: 'open',
      run: () => api.call('projects.update', { params, body: { visibility: other } }),
    },
    { label: 'Delete', icon: 'trash', isDangerous: true, run: () => setDeleting(true) },
  ]
  return (
    <>
      <Menu label={`Actions on ${name}`} items={items} />
      {isDeleting && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete the project"
          typed={name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('projects.delete', { params })
            store.projects.remove(id)
            onDeleted?.()
            notices.done(`${name} was deleted.`)
          }}
        >
          <p>Its app ends, and its files and variables are gone. They cannot be brought back.</p>
        </Confirm>
      )}
    </>
  )
}

/** The phases in which the state of the app says more than the phase: nothing is brought up. */
const SHOWN_BY_APP: ReadonlySet<string | null> = new Set([null, 'ready'])

/** The state of a project in a word: the phase of its bring-up while there is one, a crash, else whether its app runs. */
export function ProjectState({ project }: { project: Project }) {
  const { runtime_status: runtime, init_phase: phase, crash } = project
  if (crash) return <State of="crashed" />
  // The version before runs, as after a change that did not come up.
  if (phase === 'failed' && runtime === 'running') return <State of="running" />
  return <State of={SHOWN_BY_APP.has(phase) ? runtime : (phase ?? runtime)} />
}
