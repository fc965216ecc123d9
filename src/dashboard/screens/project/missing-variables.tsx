import { useId, useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'
import { type AppVariable, useVariables } from './use-variables.ts'

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

/** The input for a variable, with what the code says of it. */
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
