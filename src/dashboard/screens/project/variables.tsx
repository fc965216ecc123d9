import { useId, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/http.tsx'
import { Failure, Loading } from '../../components/page.tsx'
import { RemoveVariable, VariableForm } from '../../components/variable-form.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'
import { useLive } from '../../store/use-live.ts'

/** The variables of a project: their names, and how its code uses them. Values are written, and never read. */
export function VariablesTab({ project }: { project: Project }) {
  const { api } = useDashboard()
  const known = useVariables(project)
  const [name, setName] = useState('')
  const [removing, setRemoving] = useState<string | null>(null)
  const params = { projectId: project.id }
  const set = (secrets: Record<string, string | null>) =>
    api.call('projectSecrets.set', { params, body: { secrets } })
  if (known instanceof Error) return <Failure error={known} />
  if (known === null) return <Loading />
  const asked = new Map(known.variables.map((variable) => [variable.name, variable]))
  const names = [...new Set([...known.keys, ...asked.keys()])].sort()
  return (
    <div class="variables">
      {names.length === 0 ? (
        <p class="quiet">
          No variables are set, and the code asks for none. What you set here stands in the environment of the
          app when it starts.
        </p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Value</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {names.map((one) => (
              <Row
                key={one}
                name={one}
                variable={asked.get(one)}
                isSet={known.keys.includes(one)}
                onSet={() => {
                  setName(one)
                  document.querySelector<HTMLInputElement>('.pair input[type=password]')?.focus()
                }}
                onRemove={() => setRemoving(one)}
              />
            ))}
          </tbody>
        </table>
      )}
      <VariableForm
        name={name}
        onName={setName}
        names={known.keys}
        onSet={(one, value) => set({ [one]: value })}
        option={`--project ${project.slug}`}
        path={`/projects/${project.id}/secrets`}
      />
      {removing !== null && (
        <RemoveVariable
          name={removing}
          onRemove={() => set({ [removing]: null })}
          onClose={() => setRemoving(null)}
          option={`--project ${project.slug}`}
          path={`/projects/${project.id}/secrets`}
        >
          Its value is gone, and the app is restarted without it if it runs.
        </RemoveVariable>
      )}
    </div>
  )
}

/** A variable in the table: whether it has a value, and how the code uses it. */
function Row({
  name,
  variable,
  isSet,
  onSet,
  onRemove,
}: {
  name: string
  variable: AppVariable | undefined
  isSet: boolean
  onSet: () => void
  onRemove: () => void
}) {
  return (
    <tr>
      <th scope="row">
        <code>{name}</code>
        {variable?.description && (
          <p class="quiet">
            <bdi>{variable.description}</bdi>
          </p>
        )}
      </th>
      <td class="quiet">{isSet ? 'set, not shown' : shownValue(variable)}</td>
      <td>
        {isSet ? (
          <Button look="quiet" icon="trash" label={`Remove ${name}`} onClick={onRemove} />
        ) : (
          <Button look="quiet" icon="plus" label={`Set ${name}`} onClick={onSet} />
        )}
      </td>
    </tr>
  )
}

/** Says which value an app gets for a variable that its project does not set. */
function shownValue(variable: AppVariable | undefined) {
  if (variable?.set_for === 'server') return 'set for the server, not shown'
  if (variable?.missing) return <span class="state waiting">missing</span>
  if (variable?.default != null)
    return (
      <>
        <code>{variable.default}</code> by default
      </>
    )
  return 'not set; the app can do without'
}

/** Asks for the variables that a bring-up waits for, saves them, and has it go on. */
export function MissingVariables({ project }: { project: Project }) {
  const { api, notices } = useDashboard()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [isShown, setShown] = useState(false)
  const known = useVariables(project)
  if (project.init_phase !== 'awaiting_secrets' || known === null || known instanceof Error) return null
  const asked = known.variables.filter(({ set_for: setFor }) => setFor === null)
  const missing = asked.filter((variable) => variable.missing)
  const optional = asked.filter((variable) => !variable.missing)
  if (missing.length === 0) return null
  const params = { projectId: project.id }
  const secrets = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
  const save = async (): Promise<void> => {
    await api.call('projectSecrets.set', { params, body: { secrets } })
    setValues({})
    notices.done(`The bring-up of ${project.name} goes on.`)
  }
  const input = (variable: AppVariable) => (
    <VariableInput
      key={variable.name}
      variable={variable}
      isShown={isShown}
      value={values[variable.name] ?? ''}
      onInput={(value) => setValues({ ...values, [variable.name]: value })}
    />
  )
  const names = [...missing.map(({ name }) => name), ...Object.keys(secrets)]
  return (
    <form
      class="missing-variables panel"
      aria-label="Missing variables"
      onSubmit={(event) => {
        event.preventDefault()
        void notices.attempt(save)
      }}
    >
      <h2>
        {missing.length === 1 ? 'The app needs a variable' : `The app needs ${missing.length} variables`}
      </h2>
      <p class="quiet">
        The bring-up waits for {missing.length === 1 ? 'it' : 'them'}. Values are kept encrypted and never
        shown again.
      </p>
      {missing.map(input)}
      {optional.length > 0 && (
        <details>
          <summary>{optional.length} more that it can do without</summary>
          {optional.map(input)}
        </details>
      )}
      <div class="actions">
        <Button type="submit" look="primary">
          Save and go on
        </Button>
        <Button onClick={() => api.call('projects.init', { params, body: { proceed: true } })}>
          Go on without {missing.length === 1 ? 'it' : 'them'}
        </Button>
        <label class="switch">
          <input
            type="checkbox"
            checked={isShown}
            onChange={({ currentTarget }) => setShown(currentTarget.checked)}
          />
          Show what I type
        </label>
      </div>
      <CommandLines
        berth={`berth secrets set ${[...new Set(names)].join(' ')} --project ${project.slug}`}
        method="PUT"
        path={`/projects/${project.id}/secrets`}
        body={{ secrets: Object.fromEntries([...new Set(names)].map((name) => [name, '…'])) }}
      />
    </form>
  )
}

/** The input for a variable, with its use in the code. */
function VariableInput({
  variable: { name, description, default: preset, missing },
  value,
  isShown,
  onInput,
}: {
  variable: AppVariable
  value: string
  isShown: boolean
  onInput: (value: string) => void
}) {
  const id = useId()
  const field = {
    autocomplete: 'off' as const,
    spellcheck: false,
    required: missing,
    placeholder: preset === null ? '' : `${preset} by default`,
    value,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => onInput(currentTarget.value),
  }
  return (
    <div class="field">
      <label for={id}>
        <code>{name}</code>
        {description !== null && (
          <small class="quiet">
            {' '}
            <bdi>{description}</bdi>
          </small>
        )}
      </label>
      {isShown ? <input id={id} type="text" {...field} /> : <input id={id} type="password" {...field} />}
    </div>
  )
}

/** The variables of a project: those that are set, by name, and those that its code asks for. */
type ProjectVariables = ResponseOf<'projectSecrets.list'>

/** A variable that the code of a project asks for. */
type AppVariable = ProjectVariables['variables'][number]

/** Returns the variables of a project as they are now; null until they are known, and an error if they cannot be. */
function useVariables({
  id,
  server_id: serverId,
  init_phase: phase,
}: Project): ProjectVariables | Error | null {
  const { api } = useDashboard()
  const { value } = useLive<ProjectVariables>(
    () => api.call('projectSecrets.list', { params: { projectId: id } }),
    'secret',
    (change) => change.id === id || change.id === serverId,
    // What the code asks for is found out in the phases.
    [api, id, serverId, phase],
  )
  return value
}
