import type { ComputeDriver, Handle, Limits, Probe, Sandbox } from '../../src/compute/driver.ts'
import { ServerDirectories } from '../../src/compute/local/server-directories.ts'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { NoIsolation } from '../../src/compute/none/isolation.ts'
import { findMarked, STDIO } from '../../src/compute/processes.ts'
import { RemoteSandbox } from '../../src/compute/remote/sandbox.ts'
import { KEEP_ALIVE } from '../../src/compute/sandboxd/client.ts'
import { PipeTransport } from '../../src/compute/sandboxd/transport.ts'
import type { SelfCommand } from '../../src/compute/self.ts'
import { killAll, signal } from '../../src/compute/terminate.ts'
import { createLogger } from '../../src/runtime/logger.ts'

/**
 * Runs each server behind a pair of pipes, as a driver does whose servers are elsewhere: berth knows of a sandbox what
 * its sandboxd says. The sandboxd is a process of this machine without isolation.
 */
export class PipedDriver implements ComputeDriver {
  readonly name = 'none'
  readonly #isolation: NoIsolation
  readonly #directories: ServerDirectories

  constructor(
    private readonly local: ComputeDriver,
    { dataDir, self, path }: { dataDir: string; self: SelfCommand; path: string },
  ) {
    this.#directories = new ServerDirectories(dataDir)
    this.#isolation = new NoIsolation({
      ...{ dataDir, self, path },
      outbound: { mode: 'public', hosts: [] },
      machinePorts: [],
      projectPorts: null,
      baseUrl: () => null,
      provide() {},
      workspace: (dir) => new LocalWorkspace(dir),
      logger: createLogger('warn', (line) => process.stderr.write(line), Date.now),
    })
  }

  probe(): Promise<Probe> {
    return this.local.probe()
  }

  create(serverId: string): Promise<Handle> {
    return this.local.create(serverId)
  }

  async start(id: string, handle: Handle, limits: Limits): Promise<Sandbox> {
    const dir = this.#directories.dir(handle)
    const marker = this.#directories.serverMarker(handle)
    const workspace = this.#directories.workspace(handle)
    const launch = await this.#isolation.launch({ id, dir, workspace, marker, limits })
    const [marked = '', ...command] = [...launch.argv].reverse()
    const sandboxd = Bun.spawn([...command.reverse(), STDIO, marked], {
      cwd: '/',
      env: { ...launch.env },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    return RemoteSandbox.start({
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
      network: { network: 'shared', forward() {}, outboundControl: null },
      limits,
      memoryEnforcedBy: 'watchdog',
      remove: () => endSandbox(sandboxd, marker),
      fillStorage: async () => {},
    })
  }

  workspace(handle: Handle): ReturnType<ComputeDriver['workspace']> {
    return this.local.workspace(handle)
  }

  reap(handles: Handle[]): Promise<void> {
    return this.local.reap(handles)
  }

  destroy(handle: Handle): Promise<void> {
    return this.local.destroy(handle)
  }

  sweep(known: Handle[]): Promise<void> {
    return this.local.sweep(known)
  }

  isSentFromServer(...args: Parameters<ComputeDriver['isSentFromServer']>): Promise<boolean> {
    return this.local.isSentFromServer(...args)
  }
}

/** Ends a sandboxd and what it has started, as an engine removes a container. */
async function endSandbox(sandboxd: Bun.Subprocess, marker: string): Promise<void> {
  signal(sandboxd.pid, 'SIGKILL')
  await sandboxd.exited
  await killAll(() => findMarked(new Set([marker])))
}
