import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from '../runtime/logger.ts'
import { ComputeError } from './compute-error.ts'
import type { Sandbox } from './sandbox.ts'

/** Called when a sandbox ended without being asked to. */
type SandboxExitListener = (serverId: string, reason: string) => void

/** The sandboxes that run in this process, by server. */
export class SandboxRegistry {
  readonly #logger: Logger
  readonly #onGone: SandboxExitListener
  /** A sandbox ends by itself on behalf of nobody, not of the request that started it. */
  readonly #outside = AsyncLocalStorage.snapshot()
  readonly #running = new Map<string, Sandbox>()
  #closed = false

  constructor(logger: Logger, onGone: SandboxExitListener) {
    this.#logger = logger
    this.#onGone = onGone
  }

  /** Returns the server's sandbox if it runs. */
  get(serverId: string): Sandbox | undefined {
    return this.#running.get(serverId)
  }

  /** Starts the server's sandbox, unless it runs. The caller sees to it that two calls for one server do not overlap. */
  async start(serverId: string, start: () => Promise<Sandbox>): Promise<Sandbox> {
    const present = this.#running.get(serverId)
    if (present) return present
    if (this.#closed) throw new ComputeError('The service is stopping.')
    const sandbox = await start()
    if (this.#closed) {
      await sandbox.stop()
      throw new ComputeError('The service is stopping.')
    }
    this.#running.set(serverId, sandbox)
    void sandbox.exited.then(({ reason }) => {
      if (this.#running.get(serverId) !== sandbox) return
      this.#running.delete(serverId)
      this.#logger.warn('a sandbox ended by itself', { serverId, reason })
      this.#outside(() => this.#onGone(serverId, reason))
    })
    return sandbox
  }

  /** Ends every process of the server; resolves when none is left. */
  async stop(serverId: string): Promise<void> {
    const sandbox = this.#running.get(serverId)
    if (!sandbox) return
    this.#running.delete(serverId)
    await sandbox.stop()
  }

  /** Pauses every process of every server until the returned function is called. If one cannot be, none is. */
  async pause(): Promise<() => void> {
    const paused = await Promise.allSettled([...this.#running.values()].map((sandbox) => sandbox.pause()))
    const resume = (): void => {
      for (const one of paused) if (one.status === 'fulfilled') one.value()
    }
    const failed = paused.find((one) => one.status === 'rejected')
    if (failed === undefined) return resume
    resume()
    throw failed.reason
  }

  /** Ends every process of every server and starts none anymore. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.#running.keys()].map((serverId) => this.stop(serverId)))
  }
}
