import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { SERVER_USER } from '../../src/compute/engine/engine.ts'
import { KubernetesClient, type KubernetesObject } from '../../src/compute/kubernetes/client.ts'
import { readAccess } from '../../src/compute/kubernetes/kubeconfig.ts'
import type { Pod } from '../../src/compute/kubernetes/pod.ts'
import { CLUSTER_RIGHTS } from '../../src/compute/kubernetes/rights.ts'
import { tryCluster } from '../../src/compute/kubernetes/trial.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { LIMITS, run } from '../compute/bench.ts'
import type { ClusterNode } from '../support/kubernetes/cluster.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import {
  makeStorageClass,
  SHARED_CLASS,
  STORAGE_CLASS,
  STORAGE_CLASSES,
} from '../support/kubernetes/provisioner.ts'
import { until } from '../support/processes.ts'
import { cleanEnvironment } from '../support/serve.ts'
import {
  disposable,
  driverOfEngine,
  EXECUTABLE,
  engineOn,
  failure,
  LongOutput,
  NAMESPACE,
  OBJECTS,
  onCluster,
  podsIn,
} from './kubernetes-servers.ts'

onCluster('faults of a cluster', { nodes: 2, noticesLossSoon: true }, (on) => {
  const pods = (): Promise<readonly Pod[]> => podsIn(on.cluster)
  /** The node and the pod of the only server that runs. */
  const nodeOfServer = async (): Promise<[ClusterNode, Pod]> => {
    const [pod] = await pods()
    const node = on.cluster.nodes.find(({ name }) => name === pod?.spec.nodeName)
    if (pod === undefined || node === undefined) throw new Error('the server has no node')
    return [node, pod]
  }
  const started = async (id: string): Promise<Sandbox> =>
    on.driver.start(id, await on.driver.create(id), LIMITS)

  test('output arrives whole when the API server is killed twice and kubelets are restarted', async () => {
    await using sandbox = disposable(await started('srv_output'))
    const output = new LongOutput()
    const { exit } = sandbox.it.exec({
      ...{ command: LongOutput.command, timeoutMs: 110_000 },
      onOutput: (stream, data) => output.take(stream, data),
    })
    const is = (share: number): Promise<void> =>
      until(() => output.bytes > share * LongOutput.bytes, 'output', 60_000)
    for (const share of [0.1, 0.3]) {
      await is(share)
      await on.cluster.apiServer.end('SIGKILL')
      on.cluster.apiServer.start()
    }
    await is(0.5)
    for (const { kubelet } of on.cluster.nodes) {
      await kubelet.end('SIGTERM')
      kubelet.start()
    }
    await is(0.7)
    for (const { containerd } of on.cluster.nodes) {
      await containerd.end('SIGKILL')
      containerd.start()
    }
    expect(await exit).toMatchObject({ exitCode: 0 })
    expect(output.isWhole()).toBe(true)
  }, 120_000)

  test('commands run once at most while containerd is away, and its return ends nothing', async () => {
    const handle = await on.driver.create('srv_runtime')
    await using sandbox = disposable(await on.driver.start('srv_runtime', handle, LIMITS))
    const [{ containerd }] = await nodeOfServer()
    const uids = (await pods()).map(({ metadata }) => metadata.uid)
    const done: number[] = []
    const attempts: Promise<string>[] = []
    /** Why a command fails, or that it waits. */
    const attempt = (): Promise<string> => {
      const n = attempts.length
      const outcome = failure(run(sandbox.it, `echo ${n} >>log`).then(() => done.push(n)))
      attempts.push(outcome)
      return Promise.race([outcome, Bun.sleep(500).then(() => 'it waits')])
    }
    await containerd.end('SIGKILL')
    const isRefused = async (): Promise<boolean> =>
      (await attempt()).startsWith('The server cannot be reached at present. ')
    await until(isRefused, 'a refusal')
    containerd.start()
    await until(async () => (await attempt()) === 'it succeeded', 'a command again', 60_000)
    await Promise.all(attempts)
    const { stdout } = await run(sandbox.it, 'sort -n log')
    const ran = stdout.trim().split('\n').map(Number)
    expect(new Set(ran).size).toBe(ran.length)
    expect(ran).toEqual(expect.arrayContaining(done))
    expect((await pods()).map(({ metadata }) => metadata.uid)).toEqual(uids)
  }, 120_000)

  test('a server on a lost node is named as unreachable, runs on, and is there with its files when the node is back', async () => {
    const handle = await on.driver.create('srv_lost')
    const sandbox = await on.driver.start('srv_lost', handle, LIMITS)
    await run(sandbox, 'echo kept >kept; (while :; do date +%s >>ticks; sleep 1; done) >/dev/null 2>&1 &')
    const [node, before] = await nodeOfServer()
    await node.cut()
    try {
      const refusal = (): Promise<string> =>
        Promise.race([failure(run(sandbox, 'true')), Bun.sleep(1_000).then(() => 'it waits')])
      await until(async () => (await refusal()).includes(node.name), 'an error that names the node', 60_000)
      expect(on.driver.placement(handle).cause).toContain(node.name)
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
    await on.driver.destroy(handle)
  }, 120_000)

  test('a full disk of a node is said to who writes, and the server goes on', async () => {
    const handle = await on.driver.create('srv_full')
    const first = await on.driver.start('srv_full', handle, LIMITS)
    const [node] = await nodeOfServer()
    const path = `${OBJECTS}/persistentvolumeclaims/${handle.storage}`
    const { spec } = await on.cluster.client.request<{ spec: { volumeName: string } }>('GET', path)
    await first.stop()
    // What a pod gets of a volume is what is mounted there when it starts.
    const volume = `${node.volumes}/${spec.volumeName}`
    await node.run('mount', '-t', 'tmpfs', '-o', 'size=4m,mode=777', 'tmpfs', volume)
    try {
      await using sandbox = disposable(await on.driver.start('srv_full', handle, LIMITS))
      const { exitCode, stderr } = await run(sandbox.it, 'head -c 8000000 /dev/zero >big')
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('No space left on device')])
      const workspace = on.driver.workspace(handle)
      const refused = failure(workspace.write('more', Buffer.alloc(1e6)))
      expect(await refused).toMatch(/^The disk is full: "more" was not written\. Free space /)
      expect((await run(sandbox.it, 'rm big; echo fine')).stdout).toBe('fine\n')
      await workspace.write('more', Buffer.alloc(1e6))
    } finally {
      await node.run('umount', '--lazy', volume)
    }
    await on.driver.destroy(handle)
  }, 120_000)

  test('a start waits for a removal that is under way; files that somebody removes are missed', async () => {
    const handle = await on.driver.create('srv_removed')
    const sandbox = await on.driver.start('srv_removed', handle, LIMITS)
    await run(sandbox, 'echo kept >kept')
    const [pod] = await pods()
    await on.cluster.client.request('DELETE', `${OBJECTS}/pods/${pod?.metadata.name}`)
    expect((await sandbox.exited).reason).toContain('deleted')
    const next = await on.driver.start('srv_removed', handle, LIMITS)
    expect((await run(next, 'cat kept')).stdout).toBe('kept\n')
    expect((await pods()).length).toBe(1)
    // The claim goes when the last pod does that uses it.
    await on.cluster.client.request('DELETE', `${OBJECTS}/persistentvolumeclaims/${handle.storage}`)
    expect((await run(next, 'cat kept')).stdout).toBe('kept\n')
    await next.stop()
    expect(await failure(on.driver.start('srv_removed', handle, LIMITS))).toContain(
      "The server's files are gone",
    )
    expect(await pods()).toEqual([])
    await on.driver.destroy(handle)
  }, 120_000)

  test('without a default storage class nothing is created, and what has to be set is said at once', async () => {
    const { client } = on.cluster
    await client.request('DELETE', `${STORAGE_CLASSES}/${STORAGE_CLASS}`)
    try {
      const began = performance.now()
      expect(await failure(on.driver.create('srv_classless'))).toMatch(
        /^The cluster has no default storage class: .*--kubernetes-storage-class/,
      )
      expect(performance.now() - began).toBeLessThan(5_000)
      const left = `${OBJECTS}/persistentvolumeclaims?labelSelector=${encodeURIComponent('berth.dev/server=srv_classless')}`
      expect((await client.list(left)).items).toEqual([])
    } finally {
      await makeStorageClass(client, STORAGE_CLASS)
    }
  })

  test('a class that makes no volume for one pod alone makes one for the pods of a node', async () => {
    const engine = await engineOn(on.cluster.kubeconfig, { storageClass: SHARED_CLASS })
    const shared = driverOfEngine(engine, on.directory)
    for (const id of ['srv_shared', 'srv_next']) {
      const handle = await shared.create(id)
      const sandbox = await shared.start(id, handle, LIMITS)
      expect((await run(sandbox, 'echo written >file; cat file')).stdout).toBe('written\n')
      const path = `${OBJECTS}/persistentvolumeclaims/${handle.storage}`
      expect(await on.cluster.client.request('GET', path)).toMatchObject({
        metadata: { labels: { 'berth.dev/server': id } },
        spec: { accessModes: ['ReadWriteOnce'] },
      })
      await sandbox.stop()
      await shared.destroy(handle)
    }
  }, 120_000)

  test('lists come whole in pages', async () => {
    const { client } = on.cluster
    const path = `${OBJECTS}/configmaps`
    const names = Array.from({ length: 5 }, (_, n) => `page-${n}`)
    for (const name of names)
      await client.request('POST', path, { metadata: { name, labels: { of: 'pages' } } })
    const access = await readAccess({ kubeconfig: [on.cluster.kubeconfig], context: null }, {})
    const { items } = await new KubernetesClient(access, 2).list<KubernetesObject>(
      `${path}?labelSelector=of%3Dpages`,
    )
    expect(items.map(({ metadata }) => metadata.name)).toEqual(names)
  })

  test('what a cluster refuses is said with the remedy, and leaves nothing', async () => {
    const handle = await on.driver.create('srv_refused')
    const { storage } = handle
    const begin = async (config: Parameters<typeof engineOn>[1], change: object = {}): Promise<string> => {
      const engine = await engineOn(on.cluster.kubeconfig, config)
      const spec = {
        ...{ name: `refused-${Bun.hash(JSON.stringify([config, change])).toString(36)}`, storage },
        labels: { owner: '0123456789abcdef', server: 'srv_refused', ephemeral: true },
        ...{ image: SERVER_IMAGE, args: [], env: {}, limits: LIMITS, user: SERVER_USER },
        ...change,
      }
      return failure(engine.run(spec))
    }
    expect(await begin({}, { image: 'localhost/missing:1' })).toMatch(/not present.*--pull missing/)
    expect(await begin({}, { user: 0 })).toMatch(/violates PodSecurity.*without root/)
    expect(await begin({}, { limits: { ...LIMITS, cpus: 1e4 } })).toMatch(/No node .*Insufficient cpu/)
    expect(await begin({ runtimeClass: 'missing' })).toMatch(/RuntimeClass.*--kubernetes-runtime-class/)
    expect(await begin({ namespace: 'missing' })).toMatch(/not found.*kubectl create namespace missing/)
    const quota = { metadata: { name: 'quota' }, spec: { hard: { 'limits.memory': '100Mi' } } }
    await on.cluster.client.request('POST', `${OBJECTS}/resourcequotas`, quota)
    await until(async () => (await begin({})).includes('exceeded quota'), 'a quota that holds')
    await on.cluster.client.request('DELETE', `${OBJECTS}/resourcequotas/quota`)
    expect((await pods()).map(({ metadata }) => metadata.name)).toEqual([])
    await on.driver.destroy(handle)
  }, 120_000)

  test('doctor says what servers get and reach, and that nothing enforces policies here, and leaves nothing', async () => {
    const child = Bun.spawn([EXECUTABLE, 'doctor', '--compute', 'kubernetes', '--json'], {
      env: {
        ...cleanEnvironment(),
        ...{ BERTH_KUBECONFIG: on.cluster.kubeconfig, BERTH_KUBERNETES_NAMESPACE: NAMESPACE },
        ...{ BERTH_SERVER_IMAGE: SERVER_IMAGE, BERTH_DATA: join(on.directory, 'doctor') },
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const { findings } = (await child.stdout.json()) as { findings: { name: string }[] }
    expect(findings.filter(({ name }) => ['volumes', 'reach', 'policies'].includes(name))).toMatchObject([
      { status: 'ok', detail: expect.stringContaining('ReadWriteOncePod') },
      { status: 'absent', detail: expect.stringMatching(/reach the API server .*, a kubelet .*:10250/) },
      { status: 'absent', detail: expect.stringContaining('accepted and not enforced') },
    ])
    const policies = `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies`
    for (const path of [`${OBJECTS}/pods`, policies])
      expect((await on.cluster.client.list(path)).items).toEqual([])
    const claims = await on.cluster.client.list<KubernetesObject>(`${OBJECTS}/persistentvolumeclaims`)
    expect(claims.items.filter(({ metadata }) => metadata.name.includes('doctor'))).toEqual([])
  }, 120_000)

  test('an account without a right is refused by name, and the least Role suffices', async () => {
    const { client } = on.cluster
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`
    await client.request('POST', `${OBJECTS}/serviceaccounts`, { metadata: { name: 'berth' } })
    const { status } = await client.request<{ status: { token: string } }>(
      'POST',
      `${OBJECTS}/serviceaccounts/berth/token`,
      { spec: { expirationSeconds: 600 } },
    )
    const kubeconfig = join(on.directory, 'least.conf')
    const admin = JSON.parse(await Bun.file(on.cluster.kubeconfig).text())
    admin.users[0].user = { token: status.token }
    await Bun.write(kubeconfig, JSON.stringify(admin))
    const engine = await engineOn(kubeconfig)
    const least = driverOfEngine(engine, on.directory)
    expect(await least.probe()).toMatchObject({
      available: false,
      reason: expect.stringContaining('create pods/exec'),
      remedy: 'Bind the Role to it that "berth kubernetes manifest" prints.',
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
    await until(async () => (await least.probe()).available, 'the rights of the account')
    const handle = await least.create('srv_least')
    const sandbox = await least.start('srv_least', handle, LIMITS)
    expect(await run(sandbox, 'echo yes')).toMatchObject({ stdout: 'yes\n' })
    await sandbox.stop()
    await least.destroy(handle)
    expect(await tryCluster(engine, least, () => {})).toContainEqual({
      ...{ name: 'policies', detail: 'not tried, since the account may not make a policy' },
      remedy: expect.any(String),
    })
    expect(await pods()).toEqual([])
  }, 120_000)

  test('outbound rules are said to hold only while something keeps servers from the network of the cluster', async () => {
    const engine = await engineOn(on.cluster.kubeconfig, { network: 'none' })
    const driver = driverOfEngine(engine, join(on.directory, 'closed'))
    await using sandbox = disposable(
      await driver.start('srv_closed', await driver.create('srv_closed'), LIMITS),
    )
    const holds = () => sandbox.it.outboundControl?.enforced()
    expect(await holds()).toBe(false)
    // So a request from an address of the cluster may be a server's.
    const connection = { remoteAddress: '10.9.9.9', remotePort: 9, localLoopback: null, localPort: 4747 }
    expect(await driver.senderOf(connection)).toBe('unknown')
    for (const node of on.cluster.nodes) await node.dropFromPods()
    try {
      expect(await holds()).toBe(true)
      const { stdout } = await run(
        sandbox.it,
        `bun -e 'console.log(await (await fetch("http://10.9.9.9/")).text())'`,
      )
      expect(stdout).toStartWith('berth refuses this connection')
      expect(sandbox.it.outboundControl?.refused).toMatchObject([{ destination: '10.9.9.9:80' }])
    } finally {
      for (const node of on.cluster.nodes) await node.dropFromPods(false)
    }
    await driver.close()
  }, 120_000)
})
