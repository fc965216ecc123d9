import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../client/client.ts'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'

/** The variables of a project: those that are set, by name, and those that its code asks for. */
type ProjectVariables = ResponseOf<'projectSecrets.list'>

/** A variable that the code of a project asks for. */
export type AppVariable = ProjectVariables['variables'][number]

/** Returns the variables of a project as they are now; null until they are known, and an error if they cannot be. */
export function useVariables({
  id,
  server_id: serverId,
  init_phase: phase,
}: Project): ProjectVariables | Error | null {
  const { api, changes } = useDashboard()
  const [variables, setVariables] = useState<ProjectVariables | Error | null>(null)
  useEffect(() => {
    let isShown = true
    const load = (): void =>
      void api.call('projectSecrets.list', { params: { projectId: id } }).then(
        (found) => isShown && setVariables(found),
        (error: Error) => isShown && setVariables(error),
      )
    load()
    const unsubscribe = changes.subscribe('secret', (change) => {
      if (change.id === id || change.id === serverId) load()
    })
    const forgetGap = changes.onGap(load)
    return () => {
      isShown = false
      unsubscribe()
      forgetGap()
    }
    // What the code asks for is found out in the phases.
  }, [api, changes, id, serverId, phase])
  return variables
}
