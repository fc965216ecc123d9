import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DockerClient } from '../../../src/compute/docker/client.ts'
import { DockerEngine } from '../../../src/compute/docker/docker-engine.ts'
import { importRootArchive, prepareImage } from '../../../src/compute/docker/prepare-image.ts'
import { type InstanceSpec, LISTEN_PATH } from '../../../src/compute/engine/engine.ts'
import { EngineDriver, type EngineDriverOptions } from '../../../src/compute/engine/engine-driver.ts'
import { CARRIER_COMMAND } from '../../../src/compute/processes.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { VERSION } from '../../../src/runtime/version.ts'
import { baseLayer } from '../kubernetes/image.ts'
import { attempt, until } from '../processes.ts'

/** Engines of this kind speak the Docker Engine API. */
export type EngineKind = 'docker' | 'podman'

/** Programs that an engine needs, and the Debian packages that have them. */
const PROGRAMS: Readonly<Record<EngineKind, Readonly<Record<string, string>>>> = {
  docker: { dockerd: 'docker.io', runc: 'runc', debootstrap: 'debootstrap' },
  podman: { podman: 'podman', runc: 'runc', conmon: 'conmon', debootstrap: 'debootstrap' },
}

/** The executable under test. */
const EXECUTABLE = process.env.BERTH_TEST_EXECUTABLE ?? join(import.meta.dir, '../../../dist/berth')

/** Returns why this machine cannot run an engine for tests, as a sentence; null if it can. */
export function missingForEngine(kind: EngineKind): string | null {
  if (process.platform !== 'linux') return `${kind} for tests needs Linux.`
  if (process.getuid?.() !== 0) return `${kind} for tests needs root.`
  const missing = Object.entries(PROGRAMS[kind]).filter(([program]) => Bun.which(program) === null)
  if (missing.length > 0) {
    const [programs, packages] = [0, 1].map((part) => missing.map((pair) => pair[part]).join(' '))
    return `${programs} is missing: apt-get install ${packages}.`
  }
  return existsSync(EXECUTABLE) ? null : 'there is no executable: scripts/build makes it.'
}

/** Gives an engine with other files another identity, and one with the same files its own. */
const SWITCH = `cd /etc/docker; [ ! -e of ] || mv key.json "$(cat of).json"; [ ! -e "$0.json" ] || mv "$0.json" key.json; echo "$0" > of`

/** What a driver on the engine can be given. */
type DriverOptions = Partial<Pick<EngineDriverOptions, 'leaseMs' | 'image' | 'ephemeral'>> & {
  /** Another client than one on the engine's socket. */
  client?: DockerClient
  /** Whether the engine is reached as one of this machine is; true by default. */
  isLocal?: boolean
  network?: string
  version?: string
  /** Path in containers at which sandboxd listens; by default the one that berth expects. */
  listensAt?: string
}

/**
 * An engine of its own: its files, its socket, its network, its mounts. It touches no other engine of this machine, and
 * reaches nothing outside. Disposing of it leaves nothing.
 */
export class EngineRig implements AsyncDisposable {
  // A berth that starts removes old directories whose names begin as those of its own do.
  readonly directory = mkdtempSync(join(tmpdir(), 'berth-rig-'))
  readonly socket = join(this.directory, 'engine.sock')
  readonly kind: EngineKind
  readonly #group: string
  /** Holds the namespaces, which outlive the engine. */
  readonly #holder: Bun.Subprocess
  #daemon: Bun.Subprocess | null = null
  #prepared: Promise<void> | null = null

  /** Starts one, and waits until it responds. */
  static async start(kind: EngineKind): Promise<EngineRig> {
    const rig = new EngineRig(kind)
    try {
      await until(() => rig.#isApart, 'the namespaces of the engine')
      await rig.startDaemon()
      return rig
    } catch (error) {
      await rig[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(kind: EngineKind) {
    this.kind = kind
    this.#group = `berth-test-${process.pid}-${this.directory.slice(-6)}`
    // Docker keeps its identity there, and Podman its networks.
    const script =
      'mkdir -p /etc/docker && mount -t tmpfs none /etc/docker; [ ! -d /etc/cni/net.d ] || mount -t tmpfs none /etc/cni/net.d; ip link set lo up; exec sleep infinity'
    this.#holder = Bun.spawn(
      ['unshare', '--mount', '--net', '--propagation', 'private', 'sh', '-c', script],
      { stdio: ['ignore', 'ignore', 'ignore'] },
    )
  }

  get #isApart(): boolean {
    return attempt(() => readFileSync(`/proc/${this.#holder.pid}/cmdline`, 'utf8')).startsWith('sleep')
  }

  /**
   * Starts the engine, which has ended.
   *
   * @param data name of the directory with all that it has
   * @param more further options of it
   */
  async startDaemon(data = 'data', more: readonly string[] = []): Promise<void> {
    const at = (name: string): string => join(this.directory, name)
    await this.inside(['sh', '-c', SWITCH, data]).exited
    const command =
      this.kind === 'docker'
        ? [
            ...['dockerd', '--data-root', at(data), '--exec-root', at('exec'), '--pidfile', at('pid')],
            ...['--host', `unix://${this.socket}`, '--cgroup-parent', `/${this.#group}`],
            ...more,
          ]
        : [
            ...['podman', '--root', at(data), '--runroot', at('exec'), '--tmpdir', at('tmp')],
            ...['--runtime', 'runc', '--cgroup-manager', 'cgroupfs', '--storage-driver', 'overlay'],
            ...['system', 'service', '--time', '0', `unix://${this.socket}`],
          ]
    // A killed one leaves them, and waits for a containerd that ended with it.
    for (const name of ['pid', 'exec/containerd/containerd.pid']) rmSync(at(name), { force: true })
    writeFileSync(at('log'), '')
    // Where Podman writes an image that is being loaded, which stays when it ends meanwhile.
    this.#daemon = this.inside(['env', `TMPDIR=${this.directory}`, ...command], Bun.file(at('log')))
    const client = this.client()
    await until(
      async () => {
        if (this.#daemon?.exitCode != null)
          throw new Error(`${this.kind} has ended: ${this.log.slice(-2_000)}`)
        return client.ping(1_000).then(
          () => true,
          () => false,
        )
      },
      `${this.kind} to respond`,
      60_000,
    )
  }

  /** Ends the engine. */
  async endDaemon(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#daemon?.kill(signal)
    await this.#daemon?.exited
    this.#daemon = null
  }

  /** Stops the engine, as a machine does that sleeps, or lets it go on: connections stay, and nothing responds. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#daemon?.kill(signal)
  }

  /** Ends the processes that join berth to its servers. @returns how many there were */
  killCarriers(): number {
    const carriers = this.pids.filter((pid) =>
      attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).includes(CARRIER_COMMAND),
    )
    for (const pid of carriers) attempt(() => String(process.kill(pid, 'SIGKILL')))
    return carriers.length
  }

  /** Runs a program in the namespaces of the engine. */
  inside(command: string[], output: Bun.BunFile | 'ignore' = 'ignore'): Bun.Subprocess {
    return Bun.spawn([...this.entering, ...command], { stdio: ['ignore', output, output] })
  }

  /** What runs the rest of a command line in the namespaces of the engine. */
  get entering(): string[] {
    return ['nsenter', '--target', String(this.#holder.pid), '--mount', '--net']
  }

  /** What the engine has logged. */
  get log(): string {
    return attempt(() => readFileSync(join(this.directory, 'log'), 'utf8'))
  }

  /** What a person calls it. */
  get name(): string {
    return nameOf(this.socket)
  }

  client(): DockerClient {
    return clientAt(this.socket)
  }

  /** Makes berth's own image, once. */
  prepare(): Promise<void> {
    this.#prepared ??= this.makeImage()
    return this.#prepared
  }

  /** Makes berth's own image on the engine that runs now. */
  async makeImage(): Promise<void> {
    const client = this.client()
    const base = 'berth-base:latest'
    await importRootArchive(client, Bun.file(await baseLayer()), base)
    await prepareImage({
      ...{ client, base, name: this.name, version: VERSION, executable: EXECUTABLE },
      pulls: false,
      report() {},
    })
  }

  /** Returns a driver of a data directory. */
  driver(dataDir: string, options: DriverOptions = {}): EngineDriver {
    return engineDriver(this.socket, dataDir, options)
  }

  /** Returns the ids of the containers that run, for one data directory or all. */
  async containers(owner?: string): Promise<string[]> {
    const filters = JSON.stringify(owner === undefined ? {} : { label: [`berth.owner=${owner}`] })
    const list = await this.client().json('GET', '/containers/json', { query: { filters } })
    return (list as { Id: string }[]).map(({ Id }) => Id)
  }

  /** Returns the names of the volumes. */
  async volumes(): Promise<string[]> {
    const { Volumes } = (await this.client().json('GET', '/volumes')) as {
      Volumes: { Name: string }[] | null
    }
    return (Volumes ?? []).map(({ Name }) => Name).sort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endDaemon('SIGTERM')
    this.#endLeft()
    this.#holder.kill('SIGKILL')
    await this.#holder.exited
    rmSync(this.directory, { recursive: true, force: true })
    for (const group of this.#groups()) {
      for (const name of attempt(() => readdirSync(group).join('\n')).split('\n'))
        removeGroup(join(group, name))
      removeGroup(group)
    }
  }

  /** Ends what an engine has left that was killed: its containers, and the processes that watch them. */
  #endLeft(): void {
    const namespaceOf = (pid: string | number): string => attempt(() => readlinkSync(`/proc/${pid}/ns/mnt`))
    const ours = namespaceOf(this.#holder.pid)
    const beside = readdirSync('/proc').filter(
      (pid) => /^\d+$/.test(pid) && ours !== '' && namespaceOf(pid) === ours,
    )
    for (const pid of [...beside.map(Number), ...this.pids])
      if (pid > 1 && pid !== this.#holder.pid) attempt(() => String(process.kill(pid, 'SIGKILL')))
  }

  /** The processes in its containers. */
  get pids(): number[] {
    const inside = this.#groups().flatMap((group) =>
      attempt(() => readdirSync(group).join('\n'))
        .split('\n')
        .flatMap((name) =>
          attempt(() => readFileSync(join(group, name, 'cgroup.procs'), 'utf8')).split('\n'),
        ),
    )
    return [...new Set(inside.map(Number))].filter((pid) => pid > 1)
  }

  /** The control groups of its containers, one for each controller. */
  #groups(): string[] {
    return readdirSync('/sys/fs/cgroup').map((controller) => join('/sys/fs/cgroup', controller, this.#group))
  }
}

const removeGroup = (path: string): void => {
  attempt(() => {
    rmdirSync(path)
    return ''
  })
}

/** Returns a driver of a data directory on the engine at a socket. */
export function engineDriver(socket: string, dataDir: string, options: DriverOptions = {}): EngineDriver {
  const name = nameOf(socket)
  const { client = clientAt(socket), isLocal = true, network = 'none', version = VERSION } = options
  const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
  const engine = new OtherPathEngine({
    ...{ client, name, isLocal, version, network, logger },
    ...{ runtime: null, pulls: false },
  })
  engine.listensAt = options.listensAt ?? LISTEN_PATH
  return new EngineDriver({
    ...{ engine, name, dataDir, logger },
    ephemeral: options.ephemeral ?? false,
    image: options.image ?? `berth-server:${VERSION}`,
    leaseMs: options.leaseMs ?? null,
    baseUrl: () => null,
    environment: () => ({}),
    prepareCaches: async () => {},
    provide() {},
  })
}

/** An engine whose sandboxds listen elsewhere than berth expects. */
class OtherPathEngine extends DockerEngine {
  listensAt = LISTEN_PATH

  override run(spec: InstanceSpec): ReturnType<DockerEngine['run']> {
    return super.run({ ...spec, args: spec.args.map((one) => (one === LISTEN_PATH ? this.listensAt : one)) })
  }
}

const nameOf = (socket: string): string => `The engine at unix://${socket}`

const clientAt = (socket: string): DockerClient =>
  new DockerClient({ kind: 'unix', path: socket }, nameOf(socket), null)
