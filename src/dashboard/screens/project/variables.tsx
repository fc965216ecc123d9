import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { RemoveVariable, VariableForm } from '../../components/variable-form.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'
import { type AppVariable, useVariables } from './use-variables.ts'

/** The variables of a project: their names, and what its code says of them. Values are written, and never read. */
export function Variables({ project }: { project: Project }) {
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

/** A variable in the table: whether it has a value, and what the code says of it. */
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

/** Says what an app gets of a variable that its project does not set. */
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
