import { Berth } from '../client.js'
import { gone } from '../handle.js'
import type { Taken } from '../shapes.js'
import type { BerthControl, Fault, FaultEffect, FaultOptions, Inbox } from './control.js'

/** An account of a test, which is also a client with its key. `await using` removes it at the end of its block. */
export class TestAccount extends Berth implements AsyncDisposable {
  readonly id: string
  readonly apiKey: string
  readonly #control: BerthControl

  constructor(
    control: BerthControl,
    options: { id: string; apiKey: string; baseUrl: string; retries?: number },
  ) {
    super(options)
    this.#control = control
    this.id = options.id
    this.apiKey = options.apiKey
  }

  /** Changes its plan, its limits, its budget, or what it has used. */
  async change(changes: Taken<'/_berth/accounts/{accountId}', 'patch'>): Promise<void> {
    await this.#control.call('PATCH', `/_berth/accounts/${this.id}`, changes)
  }

  /**
   * Has an operation fail for this account alone.
   *
   * @param operation an operation id, such as `servers.create`
   * @param options how often; always without `times`. The client tries some requests again: `retries: 0` of the account counts each
   */
  fail(operation: string, effect: FaultEffect, options: FaultOptions = {}): Promise<Fault> {
    const match = { operation, account_id: this.id } as Parameters<BerthControl['faults']['add']>[1]
    return this.#control.faults.add(effect, match, options)
  }

  /** Returns an inbox that no other account shares. */
  inbox(): Promise<Inbox> {
    return this.#control.inbox(this.id)
  }

  /** Removes it with everything in it. */
  async remove(): Promise<void> {
    await this.#control.call('DELETE', `/_berth/accounts/${this.id}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await gone(this.remove())
  }
}
