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
import { readChildren } from '../../../src/compute/processes.ts'
import { until } from '../processes.ts'
import { testCache } from './executable.ts'

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
    this.signal(signal)
    await child.exited
    this.#child = null
  }

  /** Sends it a signal after which it goes on, such as one that stops it until SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    for (const pid of readChildren(this.#child?.pid ?? 0) ?? []) process.kill(pid, signal)
    // nsenter stops itself when its program is stopped.
    if (signal === 'SIGCONT') this.#child?.kill(signal)
  }

  /** Throws with the end of its log if it does not run. */
  check(): void {
    if (this.#child?.exitCode === null) return
    throw new Error(`${this.name} has ended: ${readFileSync(this.log, 'utf8').slice(-2000)}`)
  }
}

/** The namespaces, network and files of a cluster. */
export class Place implements AsyncDisposable {
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

/** The command that runs another in the namespaces of a process. */
export const enter = (pid: number): string[] => [
  'nsenter',
  '--target',
  String(pid),
  '--pid',
  '--net',
  '--mount',
]

/** Runs commands of ip in the network of a process, or in this machine's. Pids in them are those of this machine. */
export async function ip(pid: number | null, commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const inside = pid === null ? [] : ['nsenter', '--target', String(pid), '--net']
    await run(...inside, 'ip', ...command.split(' '))
  }
}

export async function run(...command: string[]): Promise<void> {
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
