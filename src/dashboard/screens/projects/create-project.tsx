import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { SelectField, ServerField, TextField } from '../../components/field.tsx'
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
            berth={`berth projects create --server ${server}${name === '' ? '' : ` --name ${quoted(name)}`}${origin === 'template' ? ` --template ${template}` : ''}${origin === 'git' ? ` --git ${quoted(url)}${directory === '' ? '' : ` --directory ${quoted(directory)}`}` : ''} --public`}
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
