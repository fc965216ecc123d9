import type { ResponseOf } from '../../../route-client/client.ts'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'
import { useLive } from '../../store/use-live.ts'

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
