import { useEffect, useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Failure, Loading } from '../../components/page.tsx'
import { RemoveVariable, VariableForm } from '../../components/variable-form.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

/** The variables of a server: their names. Values are written, and never read again. */
export function Secrets({ server }: { server: Server }) {
  const { api, changes } = useDashboard()
  const [names, setNames] = useState<readonly string[] | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const [name, setName] = useState('')
  const [removing, setRemoving] = useState<string | null>(null)
  const owner = { server_id: server.id }
  const set = async (secrets: Record<string, string | null>): Promise<void> => {
    const { keys } = await api.call('secrets.set', { body: { ...owner, secrets } })
    setNames(keys)
    setFailure(null)
  }
  // Setting nothing is how the names are read.
  const read = (): Promise<void> => set({}).catch(setFailure)
  useEffect(() => {
    void read()
    const ends = [
      changes.subscribe('secret', ({ id, value }) => {
        if (id === server.id && value !== null) setNames((value as { keys: string[] }).keys)
      }),
      changes.onGap(() => void read()),
    ]
    return () => {
      for (const end of ends) end()
    }
  }, [server.id])
  if (failure) return <Failure error={failure} retry={read} />
  if (names === null) return <Loading />
  return (
    <div class="variables">
      <p class="quiet">
        All commands, terminals and apps of the server get them; a project's own win over these.
      </p>
      {names.length > 0 && (
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
                    onClick={() => setRemoving(one)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <VariableForm
        name={name}
        onName={setName}
        names={names}
        onSet={(one, value) => set({ [one]: value })}
        option={`--server ${server.id}`}
        path="/secrets"
        body={owner}
      />
      {removing !== null && (
        <RemoveVariable
          name={removing}
          onRemove={() => set({ [removing]: null })}
          onClose={() => setRemoving(null)}
          option={`--server ${server.id}`}
          path="/secrets"
          body={owner}
        >
          Its value is gone. Apps that have it are restarted without it.
        </RemoveVariable>
      )}
    </div>
  )
}
