import { afterAll, beforeAll, describe } from 'bun:test'
import type { KubernetesEngine } from '../../src/compute/kubernetes/kubernetes-engine.ts'
import { registerEngine } from '../compute/bench.ts'
import { contract } from '../compute/conformance.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { missingForCluster } from '../support/kubernetes/executable.ts'
import { driverOfEngine, engineOn, NAMESPACE } from './kubernetes-servers.ts'

const executable = process.env.BERTH_TEST_EXECUTABLE
const missing = executable === undefined ? 'Its image needs the executable.' : missingForCluster()
if (missing !== null) console.error(`SKIP servers on Kubernetes: ${missing}`)

describe.skipIf(missing !== null)('a server that is a pod', () => {
  let cluster: Cluster | null = null
  let engine: KubernetesEngine | null = null
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1, executable: executable ?? '' })
    await cluster.makeNamespace(NAMESPACE)
    engine = await engineOn(cluster.kubeconfig)
  }, 120_000)
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]()
  }, 30_000)
  registerEngine('kubernetes', (dataDir) => {
    if (engine === null) throw new Error('the cluster was not started')
    return driverOfEngine(engine, dataDir)
  })
  contract('kubernetes', { output: true, end: true })
})
