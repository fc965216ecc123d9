// Starts what runs the servers of other processes' tests, with berth's image, and removes it when the input ends:
// `provide.ts docker|kubernetes`. Prints a line of JSON: the variables by which `compute.ts` finds it, or why this machine
// cannot run it.

import { givenCluster } from './compute.ts'
import { EngineRig, missingForEngine } from './engines/engine-rig.ts'
import { Cluster } from './kubernetes/cluster.ts'
import { missingForCluster } from './kubernetes/executable.ts'
import { SERVER_IMAGE } from './kubernetes/image.ts'

const [, , compute] = process.argv
// Ctrl-C reaches the whole group; the end of the input follows.
process.on('SIGINT', () => {})

const missing = compute === 'docker' ? missingForEngine('docker') : missingForCluster()
if (missing === null) await provide()
else console.log(JSON.stringify({ missing }))

async function provide(): Promise<void> {
  await using provided = compute === 'docker' ? await EngineRig.start('docker') : await cluster()
  const variables =
    provided instanceof EngineRig
      ? { BERTH_TEST_ENGINE: `unix://${provided.socket}` }
      : { BERTH_TEST_KUBECONFIG: provided.kubeconfig, BERTH_TEST_SERVER_IMAGE: SERVER_IMAGE }
  if (provided instanceof EngineRig) await provided.prepare()
  console.log(JSON.stringify({ variables: { BERTH_TEST_COMPUTE: compute, ...variables } }))
  await Bun.stdin.text()
}

async function cluster(): Promise<Cluster> {
  const started = await Cluster.start({ nodes: 1, executable: process.env.BERTH_TEST_EXECUTABLE ?? '' })
  await started.makeNamespace(givenCluster.namespace)
  return started
}
