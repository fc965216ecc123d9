import { useEffect, useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'

/** The variables of a project: their names. Values are written, and never read again. */
export function Variables({ project }: { project: Project }) {
  const { api, changes, notices } = useDashboard()
  const [names, setNames] = useState<readonly string[] | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const params = { projectId: project.id }
  const set = async (secrets: Record<string, string | null>): Promise<void> => {
    const { keys } = await api.call('projectSecrets.set', { params, body: { secrets } })
    setNames(keys)
  }
  useEffect(() => {
    // Setting nothing is how the names are read.
    set({}).catch((error: Error) => setFailure(error))
    return changes.subscribe('secret', ({ id, value }) => {
      if (id === project.id && value !== null) setNames((value as { keys: string[] }).keys)
    })
  }, [project.id])
  if (failure) return <Failure error={failure} />
  if (names === null) return <Loading />
  const isWaiting = project.init_phase === 'awaiting_secrets'
  return (
    <div class="variables">
      {names.length === 0 ? (
        <p class="quiet">
          No variables are set. What the app needs stands in its environment when it starts.
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
              <tr key={one}>
                <th scope="row">
                  <code>{one}</code>
                </th>
                <td class="quiet">set, not shown</td>
                <td>
                  <Button
                    look="quiet"
                    icon="trash"
                    label={`Remove ${one}`}
                    onClick={() => set({ [one]: null })}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <form
        class="pair"
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(async () => {
            await set({ [name]: value })
            setName('')
            setValue('')
          })
        }}
      >
        <label class="field">
          <span>Name</span>
          <input
            type="text"
            required
            value={name}
            pattern="[A-Za-z_][A-Za-z0-9_]*"
            placeholder="API_KEY"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Value</span>
          <input
            type="password"
            autocomplete="off"
            value={value}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
        </label>
        <Button type="submit" look="primary">
          Set
        </Button>
      </form>
      {isWaiting && (
        <p class="actions">
          <Button onClick={() => api.call('projects.init', { params, body: {} })}>Go on</Button>
          <Button onClick={() => api.call('projects.init', { params, body: { proceed: true } })}>
            Go on without what is missing
          </Button>
        </p>
      )}
    </div>
  )
}
