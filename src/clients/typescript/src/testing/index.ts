/**
 * berth for tests. `berth` steers the instance that `berth run` started; without one it starts an instance at the first call, which
 * all workers of the test run share and which ends with the run, so a test also runs from an editor.
 */
import { BerthControl } from './control.js'
import { type InstanceInfo, ownInstance, sharedInstance } from './instance.js'

export { TestAccount } from './account.js'
export * from './control.js'
export type { InstanceInfo } from './instance.js'

/** An instance of a test's own. `await using` ends it at the end of its block. */
export class OwnBerth extends BerthControl implements AsyncDisposable {
  readonly #stop: () => Promise<void>

  constructor(instance: InstanceInfo & { stop(): Promise<void> }) {
    super(async () => instance)
    this.#stop = () => instance.stop()
  }

  /** Ends it, and removes everything that it made. */
  stop(): Promise<void> {
    return this.#stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

let located: Promise<InstanceInfo> | undefined

/** The instance of the test run. */
export const berth: BerthControl = new BerthControl(() => {
  located ??= sharedInstance()
  return located
})

/**
 * Starts an instance for this process alone, for a test that moves the clock or needs options of its own. It takes about a tenth of a
 * second, and ends with the process at the latest.
 *
 * @param options of `berth serve`, such as `'--freeze', '2030-01-31T23:00:00Z'`
 */
export async function startBerth(...options: string[]): Promise<OwnBerth> {
  return new OwnBerth(await ownInstance(options))
}
