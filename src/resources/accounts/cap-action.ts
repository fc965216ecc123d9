import type { Logger } from '../../runtime/logger.ts'

/**
 * What is done when an account's budget is used up: it begins when the transaction under way is over,
 * one at a time for each account, and again where it is asked for meanwhile.
 */
export class CapAction {
  readonly #logger: Logger
  readonly #running = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  #act: (accountId: string) => Promise<void> = async () => {}

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Sets what is done when an account's budget is used up. */
  onCapReached(act: (accountId: string) => Promise<void>): void {
    this.#act = act
  }

  /** Has it done for an account. */
  begin(accountId: string): void {
    if (this.#running.has(accountId)) this.#again.add(accountId)
    else this.#running.set(accountId, this.#run(accountId))
  }

  /** Resolves when what was begun for an account is done. */
  async done(accountId: string): Promise<void> {
    for (let run = this.#running.get(accountId); run; run = this.#running.get(accountId)) await run
  }

  /** Resolves when all that was begun is done. */
  async allDone(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((accountId) => this.done(accountId)))
  }

  async #run(accountId: string): Promise<void> {
    await Promise.resolve()
    try {
      await this.#act(accountId)
    } catch (error) {
      this.#again.delete(accountId)
      this.#logger.error('servers over budget could not be put to sleep', { accountId, error })
    }
    if (this.#again.delete(accountId)) this.#running.set(accountId, this.#run(accountId))
    else this.#running.delete(accountId)
  }
}
