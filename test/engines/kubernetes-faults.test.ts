import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import type { KubernetesObject } from '../../src/compute/kubernetes/client.ts'
import { CLUSTER_RIGHTS } from '../../src/compute/kubernetes/rights.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { messageOf } from '../../src/runtime/error-info.ts'
import { LIMITS, run } from '../compute/bench.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { missingForCluster } from '../support/kubernetes/executable.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { until } from '../support/processes.ts'
import { driverOfEngine, engineOn, NAMESPACE } from './kubernetes-servers.ts'

const executable = process.env.BERTH_TEST_EXECUTABLE
const missing = executable === undefined ? 'Its image needs the executable.' : missingForCluster()
if (missing !== null) console.error(`SKIP faults of a cluster: ${missing}`)

const OBJECTS = `/api/v1/namespaces/${NAMESPACE}`

describe.skipIf(missing !== null)('faults of a cluster', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-pods-'))
  let cluster: Cluster
  let driver: EngineDriver

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 2, executable: executable ?? '', noticesLossSoon: true })
    await cluster.makeNamespace(NAMESPACE)
    driver = driverOfEngine(await engineOn(cluster.kubeconfig), dataDir)
  }, 120_000)
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  }, 30_000)

  const pods = async (): Promise<(KubernetesObject & { spec: { nodeName?: string } })[]> => {
    const list = await cluster.client.request<{
      items: (KubernetesObject & { spec: { nodeName?: string } })[]
    }>('GET', `${OBJECTS}/pods`)
    return list.items
  }
  const started = async (id: string): Promise<Sandbox> => driver.start(id, await driver.create(id), LIMITS)

  /** Why an operation fails. */
  const failure = async (operation: Promise<unknown>): Promise<string> =>
    operation.then(() => 'it succeeded', messageOf)

  test('output arrives whole when the API server is killed twice and kubelets are restarted', async () => {
    await using sandbox = disposable(await started('srv_output'))
    const [hash, wanted] = [createHash('sha256'), createHash('sha256')]
    let bytes = 0
    const { exit } = sandbox.it.exec({
      command:
        'n=0; while [ $n -lt 60 ]; do n=$((n+1)); head -c 1000000 /dev/zero | tr "\\0" "$(printf "\\\\$(printf %03o $((64 + n)))")"; sleep 0.2; done',
      timeoutMs: 110_000,
      onOutput(stream, data) {
        if (stream !== 'stdout') return
        hash.update(data)
        bytes += data.length
      },
    })
    for (const share of [0.1, 0.3]) {
      await until(() => bytes > share * 60e6, 'output')
      await cluster.apiServer.end('SIGKILL')
      cluster.apiServer.start()
    }
    await until(() => bytes > 0.5 * 60e6, 'output after the API server was killed', 60_000)
    for (const { kubelet } of cluster.nodes) {
      await kubelet.end('SIGTERM')
      kubelet.start()
    }
    for (let n = 1; n <= 60; n += 1) wanted.update(Buffer.alloc(1e6, 64 + n))
    expect(await exit).toMatchObject({ exitCode: 0 })
    expect([bytes, hash.digest('hex')]).toEqual([60e6, wanted.digest('hex')])
  }, 120_000)

  test('a server on a lost node is named as unreachable, runs on, and is there with its files when the node is back', async () => {
    const handle = await driver.create('srv_lost')
    const sandbox = await driver.start('srv_lost', handle, LIMITS)
    await run(sandbox, 'echo kept >kept; (while :; do date +%s >>ticks; sleep 1; done) >/dev/null 2>&1 &')
    const [before] = await pods()
    const node = cluster.nodes.find(({ name }) => name === before?.spec.nodeName)
    if (before === undefined || node === undefined) throw new Error('the server has no node')
    await node.cut()
    try {
      const refusal = (): Promise<string> =>
        Promise.race([failure(run(sandbox, 'true')), Bun.sleep(1_000).then(() => 'it waits')])
      await until(async () => (await refusal()).includes(node.name), 'an error that names the node', 60_000)
      expect(driver.placement(handle).cause).toContain(node.name)
      // Nothing of it was deleted or doubled.
      expect((await pods()).map(({ metadata }) => [metadata.uid, metadata.deletionTimestamp])).toEqual([
        [before.metadata.uid, undefined],
      ])
    } finally {
      await node.join()
    }
    await until(async () => (await failure(run(sandbox, 'true'))) === 'it succeeded', 'the server again')
    const { stdout } = await run(
      sandbox,
      'cat kept; sort -n ticks | awk "p && \\$1 > p + 3 { print \\"gap\\" } { p = \\$1 }"',
    )
    expect(stdout).toBe('kept\n')
    expect((await pods()).map(({ metadata }) => metadata.uid)).toEqual([before.metadata.uid])
    await sandbox.stop()
    await driver.destroy(handle)
  }, 120_000)

  test('what a cluster refuses is said with the remedy, and leaves nothing', async () => {
    const handle = await driver.create('srv_refused')
    const { storage } = handle
    const begin = async (config: Parameters<typeof engineOn>[1], change: object = {}): Promise<string> => {
      const engine = await engineOn(cluster.kubeconfig, config)
      const spec = {
        ...{ name: `refused-${Bun.hash(JSON.stringify([config, change])).toString(36)}`, storage },
        labels: { owner: '0123456789abcdef', server: 'srv_refused', ephemeral: true },
        ...{ image: SERVER_IMAGE, args: [], env: {}, limits: LIMITS, root: false },
        ...change,
      }
      return failure(engine.run(spec))
    }
    expect(await begin({}, { image: 'localhost/missing:1' })).toMatch(/not present.*--pull missing/)
    expect(await begin({}, { root: true })).toMatch(/violates PodSecurity.*without root/)
    expect(await begin({}, { limits: { ...LIMITS, cpus: 1e4 } })).toMatch(/No node .*Insufficient cpu/)
    expect(await begin({ runtimeClass: 'missing' })).toMatch(/RuntimeClass.*--kubernetes-runtime-class/)
    expect(await begin({ namespace: 'missing' })).toMatch(/not found.*kubectl create namespace missing/)
    const quota = { metadata: { name: 'quota' }, spec: { hard: { 'limits.memory': '100Mi' } } }
    await cluster.client.request('POST', `${OBJECTS}/resourcequotas`, quota)
    await until(async () => (await begin({})).includes('exceeded quota'), 'a quota that holds')
    await cluster.client.request('DELETE', `${OBJECTS}/resourcequotas/quota`)
    expect((await pods()).map(({ metadata }) => metadata.name)).toEqual([])
    await driver.destroy(handle)
  }, 120_000)

  test('an account without a right is refused by name, and the least Role suffices', async () => {
    const { client } = cluster
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`
    await client.request('POST', `${OBJECTS}/serviceaccounts`, { metadata: { name: 'berth' } })
    const { status } = await client.request<{ status: { token: string } }>(
      'POST',
      `${OBJECTS}/serviceaccounts/berth/token`,
      { spec: { expirationSeconds: 600 } },
    )
    const kubeconfig = join(dataDir, 'least.conf')
    const admin = JSON.parse(await Bun.file(cluster.kubeconfig).text())
    admin.users[0].user = { token: status.token }
    await Bun.write(kubeconfig, JSON.stringify(admin))
    const engine = await engineOn(kubeconfig)
    expect(await engine.probe()).toMatchObject({
      available: false,
      reason: expect.stringContaining('create pods/exec'),
    })
    await client.request('POST', `${roles}/roles`, {
      metadata: { name: 'berth' },
      rules: Object.entries(CLUSTER_RIGHTS).map(([resource, verbs]) => ({
        apiGroups: [''],
        resources: [resource],
        verbs,
      })),
    })
    await client.request('POST', `${roles}/rolebindings`, {
      metadata: { name: 'berth' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'berth' },
      subjects: [{ kind: 'ServiceAccount', name: 'berth', namespace: NAMESPACE }],
    })
    await until(async () => (await engine.probe()).available, 'the rights of the account')
    const least = driverOfEngine(engine, dataDir)
    const handle = await least.create('srv_least')
    const sandbox = await least.start('srv_least', handle, LIMITS)
    expect(await run(sandbox, 'echo yes')).toMatchObject({ stdout: 'yes\n' })
    await sandbox.stop()
    await least.destroy(handle)
    expect(await pods()).toEqual([])
  }, 120_000)
})

/** A sandbox that is stopped at the end of a block. */
const disposable = (it: Sandbox): { it: Sandbox } & AsyncDisposable => ({
  it,
  [Symbol.asyncDispose]: () => it.stop(),
})
