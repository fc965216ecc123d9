import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../client/client.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'

type Template = ResponseOf<'templates.list'>['templates'][number]

/** Where a new project's code comes from. */
type Origin = 'template' | 'git' | 'blank'

/** Asks for the server, the code and the name of a project, creates it and goes to its log. */
export function CreateProject({ onClose, serverId }: { onClose: () => void; serverId?: string }) {
  const dashboard = useDashboard()
  const { api, store, router, notices } = dashboard
  const servers = store.servers.open().list.value
  const [chosenServer, setServer] = useState(serverId ?? '')
  const [templates, setTemplates] = useState<readonly Template[]>([])
  const [origin, setOrigin] = useState<Origin>('template')
  const [template, setTemplate] = useState('static-site')
  const [url, setUrl] = useState('')
  const [name, setName] = useState('')
  useEffect(() => {
    void notices.attempt(async () => setTemplates((await api.call('templates.list')).templates))
  }, [api, notices])
  const source =
    origin === 'template'
      ? { type: 'template' as const, template }
      : origin === 'git'
        ? { type: 'git' as const, url }
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
    <Dialog title="Create a project" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(create).then((ok) => ok && onClose())
        }}
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
          <label class="field">
            <span>Template</span>
            <select value={template} onChange={({ currentTarget }) => setTemplate(currentTarget.value)}>
              {templates.map(({ id, label, description }) => (
                <option key={id} value={id}>
                  {label}: {description}
                </option>
              ))}
            </select>
          </label>
        )}
        {origin === 'git' && (
          <label class="field">
            <span>Address of the repository</span>
            <input
              type="text"
              required
              value={url}
              placeholder="https://example.com/me/app.git"
              onInput={({ currentTarget }) => setUrl(currentTarget.value)}
            />
          </label>
        )}
        <label class="field">
          <span>Name</span>
          <input
            type="text"
            value={name}
            placeholder="two words by default"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        {servers.length === 0 ? (
          <p class="quiet">There is no server yet: one is created.</p>
        ) : (
          <label class="field">
            <span>Server</span>
            <select value={server} onChange={({ currentTarget }) => setServer(currentTarget.value)}>
              {servers.map(({ id, task }) => (
                <option key={id} value={id}>
                  {task || id}
                </option>
              ))}
            </select>
          </label>
        )}
        <div class="actions">
          <Button type="submit" look="primary">
            Create
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
        {server !== undefined && (
          <CommandLines
            berth={`berth projects create --server ${server}${name === '' ? '' : ` --name ${quoted(name)}`}${origin === 'template' ? ` --template ${template}` : ''}${origin === 'git' ? ` --git ${quoted(url)}` : ''} --public`}
            method="POST"
            path={`/servers/${server}/projects`}
            body={body}
          />
        )}
      </form>
    </Dialog>
  )
}
