import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import type { EngineHandle } from '../../src/compute/engine/names.ts'
import type { KubernetesEngine } from '../../src/compute/kubernetes/kubernetes-engine.ts'
import { LIMITS, registerEngine, run } from '../compute/bench.ts'
import { contract } from '../compute/conformance.ts'
import { givenCluster } from '../support/compute.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { dataDirectories } from './docker-faults.ts'
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

  describe('a server', () => {
    const newDirectory = dataDirectories()

    test('keeps a user of its own, which has a name and whose processes the kernel counts', async () => {
      const driver = driverOn(newDirectory())
      const use = async (handle: EngineHandle): Promise<string> => {
        const sandbox = await driver.start(handle.server, handle, { ...LIMITS, processes: 50 })
        const look = 'date >>file && id -u && id -un && echo ~ && grep "Max processes" /proc/self/limits'
        const { stdout } = await run(sandbox, look)
        await sandbox.stop()
        return stdout
      }
      const handles = await Promise.all(['srv_a', 'srv_b'].map((id) => driver.create(id)))
      const [first = '', second = ''] = await Promise.all(handles.map(use))
      expect(first).toMatch(/^\d{6}\nberth\n\/workspace\nMax processes +178 +178 /)
      expect(second).toMatch(/^\d{6}\n/)
      expect(second).not.toBe(first)
      expect(await Promise.all(handles.map(use))).toEqual([first, second])
    }, 60_000)

    test('of a berth before this one keeps the user that all had then', async () => {
      const driver = driverOn(newDirectory())
      const { user: _, ...handle } = await driver.create('srv_older')
      const sandbox = await driver.start('srv_older', handle, LIMITS)
      expect((await run(sandbox, 'touch file; id -u; id -un')).stdout).toBe('1000\nberth\n')
      await sandbox.stop()
    }, 60_000)
  })
})
