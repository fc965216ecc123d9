import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { KubernetesClient } from '../../../src/compute/kubernetes/client.ts'
import { readAccess } from '../../../src/compute/kubernetes/kubeconfig.ts'
import { until } from '../processes.ts'
import { Certificates } from './certificates.ts'
import { clusterExecutable } from './executable.ts'
import { writeImages } from './image.ts'
import { writeNodeFiles } from './node-files.ts'
import { enter, ip, type Part, Place, run } from './place.ts'
import { provideStorage } from './provisioner.ts'

/** The options of `Cluster.start`. */
export interface ClusterOptions {
  nodes: 1 | 2
  /** berth's executable, for the image of servers. */
  executable: string
  /** Whether the loss of a node is noticed after 6 s, in place of 50. */
  noticesLossSoon?: boolean
}

/**
 * A real Kubernetes: etcd, API server, controllers, scheduler and, for each node, containerd and kubelet. All of it runs in
 * a process namespace of its own, which ends with the process that started it, and in network and mount namespaces, so
 * nothing of it is left on the machine.
 */
export class Cluster implements AsyncDisposable {
  /** Absolute path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  readonly apiServer: Part
  readonly nodes: readonly ClusterNode[]
  readonly client: KubernetesClient
  readonly #place: Place
  readonly #storage = new AbortController()

  /** Brings a cluster up; resolves when its nodes are ready. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const place = await Place.make()
    try {
      return await bringUp(place, options)
    } catch (error) {
      await place[Symbol.asyncDispose]()
      throw error
    }
  }

  constructor(
    place: Place,
    kubeconfig: string,
    client: KubernetesClient,
    apiServer: Part,
    nodes: ClusterNode[],
  ) {
    this.#place = place
    this.kubeconfig = kubeconfig
    this.client = client
    this.apiServer = apiServer
    this.nodes = nodes
  }

  /** Makes the default storage class and provides its volumes. */
  provideStorage(): Promise<void> {
    return provideStorage(
      this.client,
      (node) => join(this.#place.directory, node, 'volumes'),
      this.#storage.signal,
    )
  }

  /** Makes a namespace for servers, in which pods have to be restricted, and waits until pods can be made in it. */
  async makeNamespace(name: string): Promise<void> {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await this.client.request('POST', '/api/v1/namespaces', { metadata: { name, labels } })
    const account = `/api/v1/namespaces/${name}/serviceaccounts/default`
    await until(async () => (await this.client.find(account)) !== null, 'a service account')
  }

  /** Runs kubectl as administrator and returns what it prints. */
  async kubectl(...args: string[]): Promise<string> {
    const command = [await clusterExecutable(), 'kubectl', '--kubeconfig', this.kubeconfig, ...args]
    const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
    if ((await child.exited) !== 0) throw new Error(`kubectl ${args.join(' ')}: ${errors}`)
    return output
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#storage.abort()
    await this.#place[Symbol.asyncDispose]()
  }
}

/** A node of a cluster: containerd and kubelet in namespaces of their own. */
export class ClusterNode {
  constructor(
    readonly name: string,
    readonly containerd: Part,
    readonly kubelet: Part,
    private readonly setLink: (state: 'up' | 'down') => Promise<void>,
    private readonly holder: number,
    /** Absolute path of the directory with its volumes. */
    readonly volumes: string,
    /** The range of its pods' addresses. */
    private readonly pods: string,
  ) {}

  /** Runs a command as root of the node, which sees its mounts and its network. */
  run(...command: string[]): Promise<void> {
    return run(...enter(this.holder), ...command)
  }

  /** Drops what its pods send, as a cluster does whose policies deny that, or no longer. */
  async dropFromPods(drops = true): Promise<void> {
    if (!drops) return this.run('nft', 'delete', 'table', 'ip', 'policies')
    const chains = ['input', 'forward'].map(
      (hook) => `chain ${hook} { type filter hook ${hook} priority 0; ip saddr ${this.pods} drop; }`,
    )
    await this.run('nft', `table ip policies { ${chains.join('; ')}; }`)
  }

  /** Takes the node off the network, without a word to anybody. */
  cut(): Promise<void> {
    return this.setLink('down')
  }

  /** Puts the node back on the network. */
  join(): Promise<void> {
    return this.setLink('up')
  }
}

async function bringUp(
  place: Place,
  { nodes, executable, noticesLossSoon = false }: ClusterOptions,
): Promise<Cluster> {
  const { directory, network } = place
  const program = await clusterExecutable()
  const numbers = Array.from({ length: nodes }, (_, n) => n + 1)
  const server = `https://${network}.0.1:6443`
  mkdirSync(join(directory, 'certificates'))
  const certificates = new Certificates(join(directory, 'certificates'))
  const file = (name: string): string => certificates.path(name)
  const images = join(directory, 'images.tar')
  const nodeName = (n: number): string => `node${n}`
  await Promise.all([
    writeImages(images, executable),
    certificates.make(server, [
      { name: 'apiserver', subject: '/CN=kube-apiserver', addresses: [`IP:${network}.0.1`, 'IP:127.0.0.1'] },
      { name: 'admin', subject: '/O=system:masters/CN=admin' },
      { name: 'apiserver-kubelet', subject: '/O=system:masters/CN=apiserver-kubelet' },
      { name: 'controllers', subject: '/CN=system:kube-controller-manager' },
      { name: 'scheduler', subject: '/CN=system:kube-scheduler' },
      ...numbers.map((n) => ({
        ...{ name: nodeName(n), subject: `/O=system:nodes/CN=system:node:${nodeName(n)}` },
        addresses: [`IP:${network}.0.1${n}`],
      })),
    ]),
    place.connect(),
  ])
  const holders: number[] = []
  for (const n of numbers) holders.push(await place.addNode(n))

  const etcd = place.part('etcd', place.pid, [
    ...[program, 'etcd', '--data-dir', join(directory, 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
    ...['--listen-client-urls', 'http://127.0.0.1:2379', '--advertise-client-urls', 'http://127.0.0.1:2379'],
    ...['--listen-peer-urls', 'http://127.0.0.1:2380'],
  ])
  const apiServer = place.part('apiserver', place.pid, [
    ...[program, 'apiserver', '--etcd-servers=http://127.0.0.1:2379', '--secure-port=6443'],
    ...[`--advertise-address=${network}.0.1`, `--service-cluster-ip-range=${network}.100.0/24`],
    // Without it exec would look the node's name up.
    ...[
      '--kubelet-preferred-address-types=InternalIP',
      '--endpoint-reconciler-type=none',
      '--profiling=false',
    ],
    ...['--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction'],
    ...[`--tls-cert-file=${file('apiserver.crt')}`, `--tls-private-key-file=${file('apiserver.key')}`],
    ...[`--client-ca-file=${file('ca.crt')}`, '--service-account-issuer=https://tests'],
    ...[
      `--kubelet-client-certificate=${file('apiserver-kubelet.crt')}`,
      `--kubelet-client-key=${file('apiserver-kubelet.key')}`,
    ],
    ...[
      `--service-account-key-file=${file('tokens.pub')}`,
      `--service-account-signing-key-file=${file('tokens.key')}`,
    ],
  ])
  const controllers = place.part('controllers', place.pid, [
    ...[
      program,
      'controllers',
      '--kubeconfig',
      file('controllers.conf'),
      '--use-service-account-credentials',
    ],
    ...[`--service-account-private-key-file=${file('tokens.key')}`, `--root-ca-file=${file('ca.crt')}`],
    ...['--leader-elect=false', '--allocate-node-cidrs=false', '--profiling=false'],
    // A kubelet reports at least as often as its absence is looked for, or a healthy node would be taken for lost.
    ...(noticesLossSoon ? ['--node-monitor-grace-period=6s', '--node-monitor-period=1s'] : []),
  ])
  const scheduler = place.part('scheduler', place.pid, [
    ...[
      program,
      'scheduler',
      '--kubeconfig',
      file('scheduler.conf'),
      '--leader-elect=false',
      '--profiling=false',
    ],
  ])
  const members = numbers.map((n, index) => {
    const files = join(directory, nodeName(n))
    const holder = holders[index] ?? 0
    writeNodeFiles(place, n, file, noticesLossSoon)
    const containerd = place.part(`containerd${n}`, holder, [
      ...['containerd', '--config', join(files, 'containerd.toml'), '--log-level', 'warn'],
    ])
    const kubelet = place.part(`kubelet${n}`, holder, [
      ...[
        program,
        'kubelet',
        '--config',
        join(files, 'kubelet.json'),
        '--kubeconfig',
        file(`${nodeName(n)}.conf`),
      ],
      ...['--root-dir', join(files, 'kubelet'), '--cert-dir', join(files, 'kubelet/pki')],
      ...['--hostname-override', nodeName(n), '--node-ip', `${network}.0.1${n}`],
    ])
    const setLink = (state: string): Promise<void> => ip(place.pid, [`link set node${n} ${state}`])
    return {
      holder,
      files,
      node: new ClusterNode(
        nodeName(n),
        containerd,
        kubelet,
        setLink,
        holder,
        join(files, 'volumes'),
        `${network}.${n}.0/24`,
      ),
    }
  })

  const parts = [etcd, apiServer, controllers, scheduler]
  for (const part of parts) part.start()
  const importImages = async ({ holder, files, node }: (typeof members)[number]): Promise<void> => {
    node.containerd.start()
    const ctr = [...enter(holder), 'ctr', '--address', join(files, 'state/containerd.sock')]
    await until(() => Bun.spawnSync([...ctr, 'version']).success, `containerd of ${node.name}`)
    await run(...ctr, '--namespace', 'k8s.io', 'images', 'import', images)
  }
  const access = await readAccess({ kubeconfig: [file('admin.conf')], context: null }, {})
  const client = new KubernetesClient(access)
  const isReady = (): Promise<boolean> => {
    for (const part of parts) part.check()
    return client.request('GET', '/readyz').then(
      () => true,
      () => false,
    )
  }
  await Promise.all([...members.map(importImages), until(isReady, 'the API server', 60_000)])
  rmSync(images)
  for (const { node } of members) node.kubelet.start()
  const cluster = new Cluster(
    ...([place, file('admin.conf'), client, apiServer] as const),
    members.map(({ node }) => node),
  )
  await cluster.provideStorage()
  const areReady = async (): Promise<boolean> => {
    for (const { node } of members) node.kubelet.check()
    const { items } = await client.request<NodeList>('GET', '/api/v1/nodes')
    const ready = items.filter(({ status }) =>
      status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    return ready.length === nodes
  }
  await until(areReady, 'the nodes of the cluster', 60_000)
  return cluster
}

interface NodeList {
  items: { status: { conditions?: { type: string; status: string }[] } }[]
}
