import { afterAll, beforeAll, describe } from 'bun:test'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import type { KubernetesEngine } from '../../src/compute/kubernetes/kubernetes-engine.ts'
import { registerEngine } from '../compute/bench.ts'
import { contract } from '../compute/conformance.ts'
import { givenCluster } from '../support/compute.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { driverOfEngine, EXECUTABLE, engineOn, lacksCluster, NAMESPACE } from './kubernetes-servers.ts'
import { engineLimitTests } from './limits.ts'

const { kubeconfig, namespace, image } = givenCluster

const TITLE = 'a server that is a pod'

describe.skipIf(kubeconfig === '' && lacksCluster(TITLE))(TITLE, () => {
  let cluster: Cluster | null = null
  let engine: KubernetesEngine | null = null
  const drivers: EngineDriver[] = []
  beforeAll(async () => {
    if (kubeconfig !== '') {
      engine = await engineOn(kubeconfig, { namespace }, { pulls: true })
      return
    }
    cluster = await Cluster.start({ nodes: 1, executable: EXECUTABLE })
    await cluster.makeNamespace(NAMESPACE)
    engine = await engineOn(cluster.kubeconfig)
  }, 120_000)
  afterAll(async () => {
    // With a cluster of the tests' own all claims go anyway.
    if (kubeconfig !== '') await Promise.all(drivers.map((driver) => driver.close()))
    await cluster?.[Symbol.asyncDispose]()
  }, 120_000)
  const driverOn = (dataDir: string): EngineDriver => {
    if (engine === null) throw new Error('the cluster was not started')
    const driver = driverOfEngine(engine, dataDir, kubeconfig === '' ? SERVER_IMAGE : image)
    drivers.push(driver)
    return driver
  }
  registerEngine('kubernetes', driverOn)
  contract('kubernetes', { output: true, end: true })
  engineLimitTests(driverOn, ['eth0', 'lo'])
})
