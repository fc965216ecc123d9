import type { Client } from '../client.ts'
import { findDataDirectory, type InstanceOptions } from '../find-instance.ts'
import { listInstances } from '../instances/registry.ts'
import { stopInstance } from '../instances/stop.ts'
import { printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import type { ProjectFileNames } from './berth-yaml.ts'
import type { Made } from './bring-up.ts'

/** Milliseconds that the end of the instance may take. */
const STOP_TIMEOUT_MS = 30_000

/**
 * Puts the running servers of a file to sleep.
 *
 * @returns a sentence for each
 */
export async function stopServers(control: Client, api: Client, file: ProjectFileNames): Promise<string[]> {
  const made = await madeServers(control, file)
  const { servers } = await api.call('servers.list')
  const running = made.filter(({ id }) => servers.some((one) => one.id === id && one.status !== 'sleeping'))
  await Promise.all(
    running.map(({ id }) => api.call('servers.act', { params: { serverId: id }, body: { action: 'stop' } })),
  )
  return running.map(({ name }) => `${printable(name)} sleeps; its files are kept.`)
}

/**
 * Deletes the servers of a file with all on them, its keys and its webhooks.
 *
 * @returns a sentence for each
 */
export async function deleteMade(control: Client, api: Client, file: ProjectFileNames): Promise<string[]> {
  const { fixtures } = await control.call('control.fixtures.list')
  const said: string[] = []
  const remove = async (
    kind: Made['kind'],
    names: readonly string[],
    call: (id: string) => Promise<unknown>,
  ) => {
    const all = fixtures.filter((one) => one.kind === kind && names.includes(one.name))
    await Promise.all(all.map(({ id }) => call(id)))
    said.push(...all.map(({ name }) => `The ${kind} ${printable(name)} is deleted.`))
  }
  await remove('webhook', file.webhooks, (id) => api.call('webhooks.delete', { params: { webhookId: id } }))
  await remove('key', file.keys, (id) => api.call('keys.delete', { params: { keyId: id } }))
  await remove('server', file.servers, (id) => api.call('servers.delete', { params: { serverId: id } }))
  return said
}

/** Stops the instance of the directory if "berth up --detach" has started it. Returns whether it did. */
export async function stopOwnInstance(
  options: InstanceOptions,
  { env, cwd }: ProcessContext,
): Promise<boolean> {
  const directory = findDataDirectory(options.data, env, cwd)
  const own = listInstances(env).find(
    ({ data_dir, started_by }) => data_dir === directory && started_by === 'up',
  )
  if (own === undefined) return false
  await stopInstance(directory, { timeoutMs: STOP_TIMEOUT_MS, force: true, env })
  return true
}

async function madeServers(control: Client, file: ProjectFileNames): Promise<Made[]> {
  const { fixtures } = await control.call('control.fixtures.list')
  return fixtures.filter(({ kind, name }) => kind === 'server' && file.servers.includes(name))
}
