import {
  Compute,
  type ComputeOptions,
  type Limits,
  type Provision,
  type ServerHandle,
  type ServerWish,
} from '../../../compute/compute.ts'
import type { Sandbox } from '../../../compute/sandbox.ts'
import type { Workspace } from '../../../compute/workspace.ts'
import type { BackendFailure } from './active.ts'
import { FaultySandbox } from './sandbox.ts'

/** The options of `FaultyCompute`. */
interface FaultyComputeOptions extends ComputeOptions {
  /** Called with a server in which a fault begins, applies or ends. */
  onFaults: (serverId: string) => void
}

/** Compute that fails when a fault says so, and whose sandboxes can have faults. */
export class FaultyCompute extends Compute {
  #onFreed: (serverId: string) => void = () => {}
  readonly #onFaults: (serverId: string) => void
  readonly #running = new Map<string, FaultySandbox>()
  /** Storage that counts as full: bytes reserved in addition to files, by handle. */
  readonly #full = new Map<string, { limit: number; reserved: number }>()
  #backendFailure: BackendFailure | null = null
  #workspaces: typeof import('./workspace.ts') | null = null

  constructor({ onFaults, ...options }: FaultyComputeOptions) {
    super(options)
    this.#onFaults = onFaults
  }

  /** Calls `listener` with each server whose storage no longer counts as full. */
  onFreed(listener: (serverId: string) => void): void {
    this.#onFreed = listener
  }

  /** Returns the switch that makes the driver fail in the work of a request. */
  async backendFailure(): Promise<BackendFailure> {
    const [{ BackendFailure }, workspaces] = await Promise.all([
      import('./active.ts'),
      import('./workspace.ts'),
    ])
    this.#workspaces = workspaces
    this.#backendFailure ??= new BackendFailure()
    return this.#backendFailure
  }

  /** Returns the sandbox of a server that runs. */
  running(serverId: string): FaultySandbox | undefined {
    return this.#running.get(serverId)
  }

  override provision(limits: Limits, wish?: ServerWish): Provision {
    this.#check()
    return super.provision(limits, wish)
  }

  override async start(
    serverId: string,
    handle: ServerHandle,
    limits: Limits,
    started?: Promise<Sandbox | null>,
  ): Promise<Sandbox> {
    this.#check()
    const inner = await super.start(serverId, handle, limits, started)
    const sandbox = new FaultySandbox(
      inner,
      () => this.#check(),
      (full) => this.#fill(serverId, inner.handle ?? handle, full ? limits.storageBytes : null),
      () => this.#onFaults(serverId),
    )
    this.#running.set(serverId, sandbox)
    void inner.exited.then(() => {
      if (this.#running.get(serverId) === sandbox) this.#running.delete(serverId)
    })
    return sandbox
  }

  override workspace(handle: ServerHandle): Workspace {
    const inner = super.workspace(handle)
    const workspaces = this.#workspaces
    if (workspaces === null) return inner
    const error = this.#backendFailure?.current() ?? null
    if (error !== null) return workspaces.brokenWorkspace(inner, error)
    const full = this.#full.get(keyOf(handle))
    return full === undefined ? inner : workspaces.fullWorkspace(inner, full)
  }

  /** Makes a server's storage count as full with its current files; null ends that. */
  async #fill(serverId: string, handle: ServerHandle, limit: number | null): Promise<void> {
    if (limit === null) {
      if (this.#full.delete(keyOf(handle))) this.#onFreed(serverId)
      return
    }
    this.#workspaces ??= await import('./workspace.ts')
    const used = await super.workspace(handle).usage()
    this.#full.set(keyOf(handle), { limit, reserved: Math.max(0, limit - used) })
  }

  /**
   * @throws ComputeError if the driver should fail in the calling work
   */
  #check(): void {
    const error = this.#backendFailure?.current() ?? null
    if (error !== null) throw error
  }
}

const keyOf = (handle: ServerHandle): string => JSON.stringify(handle)
