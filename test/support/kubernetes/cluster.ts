import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { KubernetesClient } from '../../../src/compute/kubernetes/client.ts'
import { readAccess } from '../../../src/compute/kubernetes/kubeconfig.ts'
import { readChildren } from '../../../src/compute/processes.ts'
import { until } from '../processes.ts'
import { Certificates } from './certificates.ts'
import { clusterExecutable, NETWORK_PLUGINS, testCache } from './executable.ts'
import { PAUSE_IMAGE, writeImages } from './image.ts'
import { provideStorage } from './provisioner.ts'

/** Clusters that can run side by side on a machine; each has a network of its own. */
const MOST_CLUSTERS = 8

/** Second part of the addresses `10.N.0.0/16` of the first cluster. */
const FIRST_NETWORK = 210

/** The file systems of control groups, version 1 or 2. */
const CGROUPS = '/sys/fs/cgroup'

/**
 * Settings of the machine that a kubelet sets, with the values that it wants. It finds these in place of the machine's own,
 * which stay as they are.
 */
const KERNEL_SETTINGS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
} as const

/** The options of `Cluster.start`. */
interface ClusterOptions {
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
  ) {}

  /** Takes the node off the network, without a word to anybody. */
  cut(): Promise<void> {
    return this.setLink('down')
  }

  /** Puts the node back on the network. */
  join(): Promise<void> {
    return this.setLink('up')
  }
}

/** A program of a cluster, which can be ended and started again. */
export class Part {
  #child: Bun.Subprocess | null = null

  /** @param spawn runs the program under nsenter, which stays as its parent */
  constructor(
    readonly name: string,
    private readonly spawn: () => Bun.Subprocess,
    private readonly log: string,
  ) {}

  start(): void {
    this.#child = this.spawn()
  }

  /** Sends it a signal; resolves when it has ended. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === null) return
    for (const pid of readChildren(child.pid) ?? []) process.kill(pid, signal)
    await child.exited
    this.#child = null
  }

  /** Throws with the end of its log if it does not run. */
  check(): void {
    if (this.#child?.exitCode === null) return
    throw new Error(`${this.name} has ended: ${readFileSync(this.log, 'utf8').slice(-2000)}`)
  }
}

/** The namespaces, network and files of a cluster. */
class Place implements AsyncDisposable {
  readonly #init: Bun.Subprocess<'pipe'>
  /** The process whose namespaces are those of the control plane. Its end ends all others. */
  readonly pid: number
  /** Absolute path of the directory of all files: on a disk, since images take a gigabyte. */
  readonly directory: string
  /** `10.N`, with which all addresses of this cluster begin. */
  readonly network: string
  readonly #link: string

  static async make(): Promise<Place> {
    mkdirSync(testCache(), { recursive: true })
    for (const name of readdirSync(testCache())) {
      const [, pid] = /^cluster-(\d+)-/.exec(name) ?? []
      if (pid !== undefined && !existsSync(`/proc/${pid}`)) removeFiles(join(testCache(), name))
    }
    const directory = mkdtempSync(join(testCache(), `cluster-${process.pid}-`))
    // It reads until its input ends, which is when this process does, in whatever way. Process 1 has to be one that reaps.
    const init = Bun.spawn(
      [
        'unshare',
        '--pid',
        '--fork',
        '--mount-proc',
        '--net',
        '--propagation',
        'private',
        'bash',
        '-c',
        'read -r _',
      ],
      { stdio: ['pipe', 'ignore', 'inherit'] },
    )
    await until(() => readChildren(init.pid)?.length === 1, 'the namespaces of a cluster')
    const [pid = 0] = readChildren(init.pid) ?? []
    for (let n = 0; n < MOST_CLUSTERS; n += 1) {
      const link = `berth-test${n}`
      // No other cluster can make a link of this name, so its addresses are ours.
      const made = Bun.spawnSync([
        'ip',
        'link',
        'add',
        link,
        'type',
        'veth',
        'peer',
        'name',
        'outside',
        'netns',
        String(pid),
      ])
      if (made.success) return new Place(init, pid, directory, `10.${FIRST_NETWORK + n}`, link)
    }
    init.kill('SIGKILL')
    throw new Error(`this machine has ${MOST_CLUSTERS} clusters already, or makes no virtual link`)
  }

  private constructor(
    init: Bun.Subprocess<'pipe'>,
    pid: number,
    directory: string,
    network: string,
    link: string,
  ) {
    this.#init = init
    this.pid = pid
    this.directory = directory
    this.network = network
    this.#link = link
  }

  /** Name of the control group of a node. */
  group(node: number): string {
    return `${basename(this.directory)}-node${node}`
  }

  /** Connects this machine to the bridge of the control plane. */
  async connect(): Promise<void> {
    await ip(this.pid, [
      'link set lo up',
      'link add bridge type bridge',
      `addr add ${this.network}.0.1/24 dev bridge`,
      'link set bridge up',
      'link set outside master bridge up',
    ])
    await ip(null, [`addr add ${this.network}.0.254/24 dev ${this.#link}`, `link set ${this.#link} up`])
  }

  /**
   * Starts a process that holds the namespaces of a node, and connects it.
   *
   * @returns its pid
   */
  async addNode(n: number): Promise<number> {
    const files = join(this.directory, `node${n}`)
    mkdirSync(join(files, 'settings'), { recursive: true })
    const settings = Object.entries(KERNEL_SETTINGS).map(([name, value]) => {
      const file = join(files, 'settings', name.replaceAll('/', '.'))
      writeFileSync(file, `${value}\n`)
      return `mount --bind ${file} /proc/sys/${name}`
    })
    // What kubelet, containerd and network plugins write at paths that nothing can change.
    const own = ['/run', '/var/lib', '/var/log'].map((path) => `mount -t tmpfs tmpfs ${path}`)
    const script = [
      'set -e',
      ...settings,
      ...own,
      'mount --make-rshared /',
      'echo ready',
      'exec sleep infinity',
    ]
    const holder = Bun.spawn(
      [
        ...enter(this.pid),
        'unshare',
        '--mount',
        '--net',
        '--propagation',
        'private',
        'bash',
        '-c',
        script.join('\n'),
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const { value } = await holder.stdout.getReader().read()
    if (value === undefined) throw new Error(`the namespaces of node ${n} could not be made`)
    const [pid = 0] = readChildren(holder.pid) ?? []
    const [address, pods] = [`${this.network}.0.1${n}`, `${this.network}.${n}.0/24`]
    await ip(this.pid, [
      `link add node${n} type veth peer name eth0 netns ${pid}`,
      `link set node${n} master bridge up`,
    ])
    await ip(pid, [
      'link set lo up',
      `addr add ${address}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${this.network}.0.1`,
    ])
    await run(
      'nsenter',
      '--target',
      String(pid),
      '--net',
      'sh',
      '-c',
      'echo 1 >/proc/sys/net/ipv4/ip_forward',
    )
    await ip(this.pid, [`route add ${pods} via ${address}`])
    await ip(null, [`route add ${pods} via ${address} dev ${this.#link}`])
    for (const path of groupPaths(this.group(n))) {
      mkdirSync(path, { recursive: true })
      // In version 1 a group begins without processors and memory nodes, and takes no process.
      for (const file of ['cpuset.cpus', 'cpuset.mems'])
        if (existsSync(join(path, '..', file)) && !existsSync(join(path, 'cgroup.controllers')))
          writeFileSync(join(path, file), readFileSync(join(path, '..', file)))
    }
    return pid
  }

  /** Describes a program that runs in the namespaces of a process of this cluster. */
  part(name: string, pid: number, command: readonly string[]): Part {
    mkdirSync(join(this.directory, 'logs'), { recursive: true })
    const log = join(this.directory, 'logs', `${name}.log`)
    const spawn = (): Bun.Subprocess => {
      const output = openSync(log, 'a')
      const child = Bun.spawn([...enter(pid), ...command], { cwd: '/', stdio: ['ignore', output, output] })
      closeSync(output)
      return child
    }
    return new Part(name, spawn, log)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The kernel ends every process of the namespace with its first one, before that is gone.
    await this.#init.stdin.end()
    await this.#init.exited
    removeFiles(this.directory)
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
    return { holder, files, node: new ClusterNode(nodeName(n), containerd, kubelet, setLink) }
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

function writeNodeFiles(
  place: Place,
  n: number,
  certificate: (file: string) => string,
  noticesLossSoon: boolean,
): void {
  const files = join(place.directory, `node${n}`)
  for (const name of ['containerd', 'state', 'kubelet', 'network', 'volumes', 'logs'])
    mkdirSync(join(files, name))
  const cri = 'plugins."io.containerd.grpc.v1.cri"'
  writeFileSync(
    join(files, 'containerd.toml'),
    `version = 2
root = "${files}/containerd"
state = "${files}/state"
[grpc]
  address = "${files}/state/containerd.sock"
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  # Root in a container of CI may lack CAP_SYS_RESOURCE, with which alone the score could be lowered.
  restrict_oom_score_adj = true
  [${cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [${cri}.cni]
    bin_dir = "${NETWORK_PLUGINS}"
    conf_dir = "${files}/network"
`,
  )
  const ranges = [[{ subnet: `${place.network}.${n}.0/24` }]]
  const ipam = {
    type: 'host-local',
    dataDir: join(files, 'addresses'),
    ranges,
    routes: [{ dst: '0.0.0.0/0' }],
  }
  const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, ipMasq: false, hairpinMode: true, ipam }
  writeFileSync(
    join(files, 'network/tests.conflist'),
    JSON.stringify({ cniVersion: '0.4.0', name: `tests${n}`, plugins: [bridge] }),
  )
  // Names are not looked up in the cluster, and at once fail to be.
  writeFileSync(join(files, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  writeFileSync(
    join(files, 'kubelet.json'),
    JSON.stringify({
      ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
      address: `${place.network}.0.1${n}`,
      authentication: {
        ...{ anonymous: { enabled: false }, webhook: { enabled: true } },
        x509: { clientCAFile: certificate('ca.crt') },
      },
      authorization: { mode: 'Webhook' },
      containerRuntimeEndpoint: `unix://${files}/state/containerd.sock`,
      ...{ cgroupDriver: 'cgroupfs', cgroupRoot: `/${place.group(n)}`, enforceNodeAllocatable: ['pods'] },
      failCgroupV1: false,
      tlsCertFile: certificate(`node${n}.crt`),
      tlsPrivateKeyFile: certificate(`node${n}.key`),
      ...{ podLogsDir: join(files, 'logs'), resolvConf: join(files, 'resolv.conf') },
      ...{ healthzPort: 0, readOnlyPort: 0, clusterDomain: 'cluster.local', clusterDNS: ['127.0.0.1'] },
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
      ...{ imageGCHighThresholdPercent: 100, imageGCLowThresholdPercent: 99 },
      ...(noticesLossSoon ? { nodeStatusUpdateFrequency: '1s', nodeLeaseDurationSeconds: 4 } : {}),
    }),
  )
}

/** The command that runs another in the namespaces of a process. */
const enter = (pid: number): string[] => ['nsenter', '--target', String(pid), '--pid', '--net', '--mount']

/** Runs commands of ip in the network of a process, or in this machine's. Pids in them are those of this machine. */
async function ip(pid: number | null, commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const inside = pid === null ? [] : ['nsenter', '--target', String(pid), '--net']
    await run(...inside, 'ip', ...command.split(' '))
  }
}

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'pipe'] })
  const errors = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${errors}`)
}

/** Paths of a control group: one in each hierarchy of version 1, or the one of version 2. */
function groupPaths(name: string): string[] {
  if (existsSync(join(CGROUPS, 'cgroup.controllers'))) return [join(CGROUPS, name)]
  const hierarchies = readdirSync(CGROUPS).filter((one) => existsSync(join(CGROUPS, one, 'cgroup.procs')))
  return hierarchies.map((one) => join(CGROUPS, one, name))
}

/** Removes the directory of a cluster that has ended, and its control groups. */
function removeFiles(directory: string): void {
  for (const n of [1, 2]) for (const path of groupPaths(`${basename(directory)}-node${n}`)) removeGroup(path)
  rmSync(directory, { recursive: true, force: true })
}

/** Removes a control group and those below it: a kernel removes only empty ones. */
function removeGroup(path: string): void {
  if (!existsSync(path)) return
  for (const one of readdirSync(path, { withFileTypes: true }))
    if (one.isDirectory()) removeGroup(join(path, one.name))
  rmdirSync(path)
}
