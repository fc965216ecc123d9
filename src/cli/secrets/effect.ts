import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { printable } from '../output.ts'
import { missingVariablesText } from '../projects/missing-variables.ts'

/**
 * Says what a change of a project's variables leads to, as lines.
 *
 * @throws CommandError
 */
export async function projectEffect(client: Client, projectId: string): Promise<string> {
  const project = await client.call('projects.get', { params: { projectId } })
  const { slug, init_phase: phase, runtime_status: status } = project
  const logs = `berth projects logs ${slug}`
  if (phase === 'awaiting_secrets') {
    const { variables } = await client.call('projectSecrets.list', { params: { projectId } })
    if (variables.some(({ missing }) => missing)) return missingVariablesText(client, project)
  }
  if (restarts(project))
    return `${printable(slug)} restarts with the change; the version before answers until then. "${logs}" shows whether it came up.\n`
  if (status === 'paused') return `${printable(slug)} sleeps, and starts with the change.\n`
  if (phase === 'failed')
    return `${printable(slug)} is not up. Try again with: berth projects restart ${slug}\n`
  if (phase === null) return ''
  return phase === 'ready'
    ? ''
    : `The bring-up of ${printable(slug)} takes the change. Look at it with: ${logs} -f\n`
}

/**
 * Says what a change of a server's variables leads to, as lines.
 *
 * @throws CommandError
 */
export async function serverEffect(client: Client, serverId: string): Promise<string> {
  const params = { serverId }
  const [{ projects }, { deployments }, { terminals }] = await Promise.all([
    client.call('projects.list', { params }),
    client.call('deployments.list', { params }),
    client.call('terminals.list', { params }),
  ])
  const apps = projects.filter(restarts).map(({ slug }) => printable(slug))
  if (deployments.some(({ live }) => live)) apps.push('what the server publishes, if that is an app')
  const isOpen = terminals.some(({ exit_code: code }) => code === null)
  return [
    apps.length > 0 ? `Apps restart with the change, and answer meanwhile: ${apps.join(', ')}.\n` : '',
    isOpen ? 'Terminals that are open do not get it: open new ones with "berth shell".\n' : '',
  ].join('')
}

/** Reports whether the app of a project runs, or is to run, so that a change of its variables restarts it. */
const restarts = ({ app, runtime_status: status, init_phase: phase, crash }: Project): boolean =>
  Boolean(app?.start) &&
  (status === 'running' || crash !== undefined) &&
  (phase === 'ready' || phase === 'failed')
