import { join } from 'node:path'
import type {
  ComputeDriver,
  Limits,
  Placement,
  Probe,
  Sender,
  ServerHandle,
} from '../../src/compute/driver.ts'
import { DiskWatch } from '../../src/compute/local/disk-watch.ts'
import { ServerDirectories } from '../../src/compute/local/server-directories.ts'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { NoIsolation } from '../../src/compute/none/isolation.ts'
import { findMarked, killAll, STDIO, signal } from '../../src/compute/processes.ts'
import { RemoteSandbox } from '../../src/compute/remote/sandbox.ts'
import { RemoteWorkspace } from '../../src/compute/remote/workspace.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { KEEP_ALIVE } from '../../src/compute/sandboxd/client.ts'
import { PipeTransport } from '../../src/compute/sandboxd/transport.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import type { SelfCommand } from '../../src/runtime/self.ts'

/**
 * Runs each server behind a pair of pipes, as a driver does whose servers are elsewhere: berth knows of a sandbox what
 * its sandboxd says. The sandboxd is a process of this machine without isolation.
 */
export class PipedDriver implements ComputeDriver {
  readonly name = 'none'
  readonly keepsFilesHere = true
  readonly #isolation: NoIsolation
  readonly #directories: ServerDirectories
  readonly #logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
  /** Those that run, by the directory of their server. */
  readonly #running = new Map<string, RemoteSandbox>()

  constructor(
    private readonly local: ComputeDriver,
    { dataDir, self, path }: { dataDir: string; self: SelfCommand; path: string },
  ) {
    this.#directories = new ServerDirectories(dataDir)
    this.#isolation = new NoIsolation({
      ...{ dataDir, self, path },
      variables: {},
      outbound: { mode: 'public', hosts: [] },
      machinePorts: [],
      projectPorts: null,
      allowUnixSockets: false,
      baseUrl: () => null,
      prepareCaches: async () => {},
      environment: () => ({}),
      provide() {},
      workspace: (dir) => new LocalWorkspace(dir),
      logger: this.#logger,
    })
  }

  probe(): Promise<Probe> {
    return this.local.probe()
  }

  create(serverId: string): Promise<ServerHandle> {
    return this.local.create(serverId)
  }

  async start(id: string, handle: ServerHandle, limits: Limits): Promise<Sandbox> {
    const dir = this.#directories.dir(handle)
    const marker = this.#directories.serverMarker(handle)
    const workspace = this.#directories.workspace(handle)
    const caches = this.#directories.makeCaches(handle)
    const launch = await this.#isolation.launch({ id, dir, workspace, caches, marker, limits, groups: [] })
    const [marked = '', ...command] = [...launch.argv].reverse()
    const sandboxd = Bun.spawn([...command.reverse(), STDIO, marked], {
      cwd: '/',
      env: { ...launch.env },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    const sandbox = await RemoteSandbox.start({
      transport: new PipeTransport(sandboxd.stdout, sandboxd.stdin),
      keepAlive: KEEP_ALIVE,
      configuration: {
        workspace: launch.workspace,
        env: launch.commandEnv,
        marker,
        confinement: launch.confinement,
        watch: { memoryBytes: limits.memoryBytes, processes: limits.processes },
        rlimits: { fileBytes: limits.storageBytes },
        receivesTerminals: false,
        sendsSockets: false,
      },
      tools: launch.tools,
      caches: launch.caches,
      network: { network: 'shared', outboundControl: null },
      limits,
      memoryEnforcedBy: 'watchdog',
      remove: () => endSandbox(sandboxd, marker),
    })
    this.#running.set(dir, sandbox)
    void sandbox.exited.then(() => this.#running.delete(dir))
    const usage = (): Promise<number> => this.local.workspace(handle).usage()
    const watch = new DiskWatch({
      limit: limits.storageBytes,
      usage,
      reclaim: () => this.emptyCaches(handle),
      sandbox,
      logger: this.#logger,
    })
    watch.start()
    sandbox.watchStorage(watch)
    return sandbox
  }

  /** The files of a server that runs are reached by its sandboxd; a volume elsewhere needs one for a sleeping server too. */
  workspace(handle: ServerHandle): ReturnType<ComputeDriver['workspace']> {
    const dir = this.#directories.dir(handle)
    const sandbox = this.#running.get(dir)
    if (sandbox === undefined) return this.local.workspace(handle)
    return new RemoteWorkspace({ connect: async () => sandbox, staging: join(dir, 'staging') })
  }

  keep(handle: ServerHandle): void {
    this.local.keep(handle)
  }

  emptyCaches(handle: ServerHandle): Promise<void> {
    return this.local.emptyCaches(handle)
  }

  placement(handle: ServerHandle): Placement {
    return this.local.placement(handle)
  }

  checkFiles(handle: ServerHandle): Promise<void> {
    return this.local.checkFiles(handle)
  }

  takeStock(...stock: Parameters<ComputeDriver['takeStock']>): ReturnType<ComputeDriver['takeStock']> {
    return this.local.takeStock(...stock)
  }

  destroy(handle: ServerHandle): Promise<void> {
    return this.local.destroy(handle)
  }

  senderOf(...args: Parameters<ComputeDriver['senderOf']>): Promise<Sender> {
    return this.local.senderOf(...args)
  }
}

/** Ends a sandboxd and what it has started, as an engine removes a container. */
async function endSandbox(sandboxd: Bun.Subprocess, marker: string): Promise<void> {
  signal(sandboxd.pid, 'SIGKILL')
  await sandboxd.exited
  await killAll(() => findMarked(new Set([marker])))
}
