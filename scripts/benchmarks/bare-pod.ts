import { EXECUTABLE_PATH, LISTEN_PATH, SERVER_USER, WORKSPACE_PATH } from '../../src/compute/engine/engine.ts'
import { newName } from '../../src/compute/engine/names.ts'
import type { KubernetesClient } from '../../src/compute/kubernetes/client.ts'
import { ExecTransport } from '../../src/compute/kubernetes/exec-transport.ts'
import { CONTAINER, claimOf, podOf } from '../../src/compute/kubernetes/objects.ts'
import type { Pod } from '../../src/compute/kubernetes/pod.ts'
import { LISTEN, sandboxdArguments } from '../../src/compute/processes.ts'
import { time } from './measure.ts'

/** Milliseconds between two attempts to run the command. */
const ATTEMPT_MS = 60

const LIMITS = { cpus: 1, memoryBytes: 2 ** 29, processes: 256, storageBytes: 2 ** 30 }

/** Makes the claim and the pod of a server by bare calls, and returns the milliseconds until it has run a command. */
export async function barePod(client: KubernetesClient, namespace: string, image: string): Promise<number> {
  const name = newName('0123456789abcdef', 'srv_bare')
  const labels = { owner: '0123456789abcdef', server: 'srv_bare', ephemeral: true }
  const objects = (kind: string): string => `/api/v1/namespaces/${namespace}/${kind}`
  const pod = `${objects('pods')}/${name}`
  const settings = { nodeSelector: {}, runtimeClass: null, pulls: false, toolsImage: image }
  const [command = '', ...rest] = sandboxdArguments('0'.repeat(24))
  const args = [command, LISTEN, LISTEN_PATH, ...rest]
  const spec = { name, labels, image, storage: name, args, env: {}, limits: LIMITS, user: SERVER_USER }
  const claim = claimOf(
    { name, labels },
    {
      size: String(LIMITS.storageBytes),
      storageClass: null,
      mode: 'ReadWriteOncePod',
    },
  )
  try {
    return await time(async () => {
      await client.request('POST', objects('persistentvolumeclaims'), claim)
      await client.request('POST', objects('pods'), podOf(spec, settings))
      while (!(await runs(client, pod))) await Bun.sleep(ATTEMPT_MS)
    })
  } finally {
    await client.request('DELETE', pod, { gracePeriodSeconds: 1 })
    while ((await client.find(pod)) !== null) await Bun.sleep(ATTEMPT_MS)
    await client.request('DELETE', `${objects('persistentvolumeclaims')}/${name}`)
  }
}

/** Runs a command in a pod as soon as that has a node; reports whether it has said something. */
async function runs(client: KubernetesClient, path: string): Promise<boolean> {
  const pod = await client.find<Pod>(path)
  if (pod?.spec.nodeName === undefined) return false
  const command = ['/bin/sh', '-c', `test -d ${WORKSPACE_PATH} && test -x ${EXECUTABLE_PATH} && echo ready`]
  const transport = await ExecTransport.start(client, path, CONTAINER, command)
  return await transport.spoken.then(
    () => true,
    () => false,
  )
}
