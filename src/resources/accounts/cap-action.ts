import type { Logger } from '../../runtime/logger.ts'

/**
 * Runs an action when an account's budget is used up. The action begins after the current transaction. It runs once
 * at a time for each account, and once more if it was requested meanwhile.
 */
export class CapAction {
  readonly #act: (accountId: string) => Promise<void>
  readonly #logger: Logger
  readonly #running = new Map<string, Promise<void>>()
  readonly #requestedAgain = new Set<string>()

  /** @param act the action, for an account whose budget is used up */
  constructor(act: (accountId: string) => Promise<void>, logger: Logger) {
    this.#act = act
    this.#logger = logger
  }

  /** Requests the action for an account. */
  request(accountId: string): void {
    if (this.#running.has(accountId)) this.#requestedAgain.add(accountId)
    else this.#running.set(accountId, this.#run(accountId))
  }

  /** Resolves when the requested actions of an account have ended. */
  async whenDone(accountId: string): Promise<void> {
    for (let run = this.#running.get(accountId); run; run = this.#running.get(accountId)) await run
  }

  /** Resolves when all requested actions have ended. */
  async whenAllDone(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((accountId) => this.whenDone(accountId)))
  }

  async #run(accountId: string): Promise<void> {
    await Promise.resolve()
    try {
      await this.#act(accountId)
    } catch (error) {
      this.#requestedAgain.delete(accountId)
      this.#logger.error('servers over budget could not be put to sleep', { accountId, error })
    }
    if (this.#requestedAgain.delete(accountId)) this.#running.set(accountId, this.#run(accountId))
    else this.#running.delete(accountId)
  }
}
