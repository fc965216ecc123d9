/** Tries with two servers what only servers show of a cluster: which volumes they get, and what their network reaches. */
import { messageOf } from '../../runtime/error-info.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Limits } from '../driver.ts'
import type { EngineDriver } from '../engine/engine-driver.ts'
import type { EngineFinding } from '../engine/open.ts'
import { isRefusal } from '../engine/refusal.ts'
import { ComputeError, type Sandbox } from '../sandbox.ts'
import type { KubernetesClient } from './client.ts'
import type { KubernetesEngine } from './kubernetes-engine.ts'
import { type AccessMode, ownedBy, POD_LABELS } from './objects.ts'
import type { Pod } from './pod.ts'

/** Ids of the servers: one is called, the other one calls. */
const CALLED = 'srv_doctor_called'
const CALLER = 'srv_doctor_caller'

const LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 26 }

/** Milliseconds for a connection of the caller, and for a program. */
const CONNECT_MS = 1_500
const PROGRAM_MS = 15_000

/** Milliseconds in which a cluster enforces a policy that it has accepted. */
const ENFORCED_MS = 10_000

/** Address at which clouds give credentials of a node to who asks there. */
const METADATA = '169.254.169.254:80'

/** Prints its port, and accepts connections until it is ended. */
const LISTENER = `
const server = Bun.listen({ hostname: '0.0.0.0', port: 0, socket: { data() {}, open(socket) { socket.end() } } })
console.log(server.port)`

/** Prints which of the addresses of its arguments can be connected to, as JSON. */
const CONNECTOR = `
const reached = await Promise.all(process.argv.slice(1).map((address) => new Promise((resolve) => {
  const { hostname, port } = new URL('tcp://' + address)
  setTimeout(resolve, ${CONNECT_MS}, false)
  const socket = { data() {}, open: () => resolve(true), connectError: () => resolve(false) }
  Bun.connect({ hostname, port: Number(port), socket }).catch(() => resolve(false))
})))
console.log(JSON.stringify(reached))
process.exit()`

/**
 * Starts two servers, tries what they get and reach, and removes them. Throws `ComputeError` if they do not start.
 *
 * @param onStep called before each step, with what is done, for a person
 */
export async function tryCluster(
  engine: KubernetesEngine,
  driver: EngineDriver,
  onStep: (step: string) => void,
): Promise<EngineFinding[]> {
  const { client, namespace } = engine
  await using servers = new AsyncDisposableStack()
  const start = async (id: string): Promise<Sandbox> => {
    const handle = await driver.create(id, undefined, LIMITS.storageBytes)
    servers.defer(() => driver.destroy(handle))
    return driver.start(id, handle, LIMITS)
  }
  onStep('start two servers in the cluster')
  const called = await start(CALLED)
  const caller = await start(CALLER)
  const { items } = await client.list<Pod>(`/api/v1/namespaces/${namespace}/pods${ownedBy(driver.owner)}`)
  const address = items.find(({ metadata }) => metadata.labels?.[`${POD_LABELS}server`] === CALLED)?.status
    .podIP
  if (address === undefined) throw new ComputeError('The cluster gives the pod of a server no address.')
  const listener = shellQuote(['bun', '-e', LISTENER])
  const port = await outputOf(called, `${listener} >port & until [ -s port ]; do sleep 0.1; done; cat port`)
  const isCalled = async (): Promise<boolean> =>
    (await connections(caller, [`${inUrl(address)}:${port.trim()}`])).includes(true)
  onStep('try what servers of the cluster reach')
  const reached = await reach(client, new Set(items.flatMap(({ status }) => status.hostIP ?? [])), caller)
  onStep('try whether the cluster enforces policies')
  const enforced = await policies(engine, driver.owner, isCalled)
  onStep('remove the servers from the cluster')
  return [volumes(engine.accessMode), reached, enforced]
}

function volumes(mode: AccessMode): EngineFinding {
  if (mode === 'ReadWriteOncePod')
    return { name: 'volumes', detail: `${mode}: each is one pod's`, remedy: null }
  return {
    name: 'volumes',
    detail: `${mode}: the cluster makes none for one pod alone, so only berth keeps a second pod from a server's files`,
    remedy: 'Name a storage class with ReadWriteOncePod, if there is one: --kubernetes-storage-class.',
  }
}

/** Tries what a server reaches that could make it more than a server. */
async function reach(
  client: KubernetesClient,
  nodes: ReadonlySet<string>,
  caller: Sandbox,
): Promise<EngineFinding> {
  const { hostname, port } = new URL(client.server)
  const places = [
    { name: 'the API server', address: `${hostname}:${port || 443}` },
    ...[...nodes].map((node) => ({ name: 'a kubelet', address: `${inUrl(node)}:10250` })),
    { name: 'what gives credentials of nodes', address: METADATA },
  ]
  const addresses = places.map(({ address }) => address)
  const reached = await connections(caller, addresses)
  const open = places.filter((_, index) => reached[index])
  const name = 'reach'
  if (open.length === 0)
    return {
      name,
      detail: 'servers reach neither the API server, nor kubelets, nor 169.254.169.254',
      remedy: null,
    }
  return {
    name,
    detail: `servers reach ${open.map(({ name, address }) => `${name} (${address})`).join(', ')}`,
    remedy: 'Deny it by a NetworkPolicy, such as the one of "berth kubernetes manifest".',
  }
}

/** Tries whether a policy holds that denies. */
async function policies(
  { client, namespace }: KubernetesEngine,
  owner: string,
  isCalled: () => Promise<boolean>,
): Promise<EngineFinding> {
  const name = 'policies'
  if (!(await isCalled()))
    return { name, detail: 'enforced: servers do not reach each other in this namespace', remedy: null }
  const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`
  const selected = { [`${POD_LABELS}owner`]: owner, [`${POD_LABELS}server`]: CALLED }
  const policy = {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
    metadata: { name: `berth-doctor-${owner}`, labels: selected },
    spec: { podSelector: { matchLabels: selected }, policyTypes: ['Ingress'] },
  }
  try {
    await client.request('POST', path, policy)
  } catch (error) {
    const why = isRefusal(error, 403) ? 'the account may not make a policy' : messageOf(error)
    const remedy = 'Servers reach each other: try whether a policy that denies it holds in this cluster.'
    return { name, detail: `not tried, since ${why}`, remedy }
  }
  try {
    const until = performance.now() + ENFORCED_MS
    do {
      if (!(await isCalled())) return { name, detail: 'enforced', remedy: null }
    } while (performance.now() < until)
    return {
      name,
      detail: 'accepted and not enforced: servers reach each other, and all that their nodes reach',
      remedy:
        'Use a network plugin that enforces policies, such as Calico or Cilium, or a cluster that has nothing which servers must not reach.',
    }
  } finally {
    await client.remove(`${path}/${policy.metadata.name}`)
  }
}

/** Returns an address as URLs have it. */
const inUrl = (address: string): string => (address.includes(':') ? `[${address}]` : address)

/** Returns which addresses a server reaches. */
async function connections(sandbox: Sandbox, addresses: readonly string[]): Promise<boolean[]> {
  return JSON.parse(await outputOf(sandbox, shellQuote(['bun', '-e', CONNECTOR, ...addresses])))
}

/** Runs a command, and returns what it prints. Throws `ComputeError` if it fails or does not end in time. */
async function outputOf(sandbox: Sandbox, command: string): Promise<string> {
  let text = ''
  const onOutput = (_: unknown, data: Uint8Array): void => {
    text += Buffer.from(data).toString()
  }
  const { exitCode, timedOut } = await sandbox.exec({ command, timeoutMs: PROGRAM_MS, onOutput }).exit
  if (exitCode === 0) return text
  const how = timedOut ? 'does not end' : `has ended: ${text.trim()}`
  throw new ComputeError(`A program of the trial ${how}.`)
}
