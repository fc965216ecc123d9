import createClient from 'openapi-fetch'
import type { Api } from '../client.js'
import { BerthError } from '../errors.js'
import type { paths } from '../generated/schema.js'
import type { Returned, Taken } from '../shapes.js'
import { Transport, withQuery } from '../transport.js'
import { TestAccount } from './account.js'
import type { InstanceInfo } from './instance.js'

/** How long a wait lasts by default, in milliseconds: shorter than most runners give a test. */
const WAIT_MS = 10_000

/** What to wait for: one of these. */
export interface WaitFor {
  /** The id of a task. */
  readonly task?: string
  readonly build?: string
  readonly project?: string
  readonly execution?: string
  readonly delivery?: string
  /** The id of an event: until every webhook that takes it was tried. */
  readonly deliveries?: string
  /** The name of an event. */
  readonly event?: string
  /** The name of an inbox. */
  readonly inbox?: string
  /** Only later events or entries: an id, or `start`. */
  readonly after?: string
  readonly accountId?: string
  /** How many entries an inbox has to have. */
  readonly count?: number
  /** How often a delivery has to be tried. */
  readonly attempts?: number
}

/** How to wait. */
export interface WaitForOptions {
  /** Other states than those in which the object has settled. */
  readonly until?: string | readonly string[]
  /** In milliseconds of real time: 10 s by default. */
  readonly timeoutMs?: number
}

/** What a wait found: the object that was waited for, in the field of its kind. */
export type Outcome = Returned<'/_berth/wait', 'get'>
/** A fault, with how often it matched and applied. */
export type Fault = Returned<'/_berth/faults', 'get'>['faults'][number]
/** What a fault does. */
export type FaultEffect = Taken<'/_berth/faults', 'post'>['effect']
/** Which requests a fault matches. */
export type FaultMatch = NonNullable<Taken<'/_berth/faults', 'post'>['match']>
/** How often a fault applies. */
export type FaultOptions = Omit<Taken<'/_berth/faults', 'post'>, 'match' | 'effect'>
/** What a new account may have. */
export type AccountCreate = Taken<'/_berth/accounts', 'post'>
/** A scenario of the scripted agent. */
export type Scenario = Taken<'/_berth/scenarios', 'put'>['scenarios'][number]
/** The clock of an instance. */
export type Clock = Returned<'/_berth/clock', 'get'>
/** A request that an inbox received. */
export type InboxEntry = Returned<'/_berth/inbox/{name}', 'get'>['entries'][number]

/** A wait whose time was over. `outcome` is the state that it found. */
export class WaitTimeoutError extends BerthError {
  constructor(
    message: string,
    readonly outcome: Outcome,
  ) {
    super(message)
  }
}

/** Steers an instance by its control API: accounts, faults, the clock, waits, inboxes and scenarios. */
export class BerthControl {
  /** Every operation of the control API and the API, with the admin token. */
  readonly api: Api
  readonly faults = new Faults(this)
  readonly clock = new ClockControl(this)
  readonly scenarios = new Scenarios(this)
  readonly #instance: () => Promise<InstanceInfo>
  #transport: Promise<Transport> | undefined

  /** @param instance locates the instance, at the first call */
  constructor(instance: () => Promise<InstanceInfo>) {
    this.#instance = instance
    this.api = createClient<paths, 'application/json'>({
      // The instance is known at the first request.
      baseUrl: 'http://berth.invalid',
      fetch: async (request) => (await this.#located()).fetch(request),
    })
  }

  /** Returns where the instance is, and its first key: starts it if it does not run yet. */
  instance(): Promise<InstanceInfo> {
    return this.#instance()
  }

  /** Makes an account with a key of its own: no other test sees what happens in it. */
  async account(options: AccountCreate & { retries?: number } = {}): Promise<TestAccount> {
    const { retries, ...params } = options
    const { baseUrl } = await this.instance()
    const created = await this.call<Returned<'/_berth/accounts', 'post', 201>>(
      'POST',
      '/_berth/accounts',
      params,
    )
    const { id, api_key: apiKey } = created
    return new TestAccount(this, { id, apiKey, baseUrl, ...(retries !== undefined && { retries }) })
  }

  /**
   * Waits for a task, a build, an inbox and so on. It responds when it happens: no test needs a sleep.
   *
   * @throws WaitTimeoutError with the state that it found, if the time is over
   */
  async wait(what: WaitFor, { until, timeoutMs = WAIT_MS }: WaitForOptions = {}): Promise<Outcome> {
    const { accountId, ...rest } = what
    const query = {
      ...rest,
      account_id: accountId,
      until: typeof until === 'string' ? until : until?.join(','),
      timeout_ms: timeoutMs,
    }
    const outcome = await this.call<Outcome>('GET', withQuery('/_berth/wait', query))
    if (!outcome.matched)
      throw new WaitTimeoutError(
        `Nothing came of ${JSON.stringify(what)} within ${timeoutMs} ms: ${JSON.stringify(outcome)}`,
        outcome,
      )
    return outcome
  }

  /** Returns the receiver of a name, to point a webhook at. It exists as soon as it is named. */
  async inbox(name: string): Promise<Inbox> {
    const { baseUrl } = await this.instance()
    return new Inbox(this, name, `${baseUrl}/_berth/inbox/${encodeURIComponent(name)}`)
  }

  /** Lets a task go on whose scenario waits in a step `hold`. */
  async release(taskId: string): Promise<void> {
    await this.call('POST', `/_berth/tasks/${encodeURIComponent(taskId)}/release`)
  }

  /** Brings the whole instance back to its start: other accounts go, too. */
  async reset(): Promise<void> {
    await this.call('POST', '/_berth/reset')
  }

  /** Calls the control API. @throws BerthError if it refuses */
  async call<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    return (await this.#located()).json(method, path, body)
  }

  #located(): Promise<Transport> {
    this.#transport ??= this.#instance().then(
      ({ baseUrl, adminToken }) => new Transport({ baseUrl, credential: adminToken, retries: 0 }),
    )
    return this.#transport
  }
}

/** Faults: requests that fail, wait or break off on purpose. */
export class Faults {
  readonly #control: BerthControl

  constructor(control: BerthControl) {
    this.#control = control
  }

  /** Sets a fault for the requests that match. Those of every account do, unless `match.account_id` names one. */
  add(effect: FaultEffect, match: FaultMatch = {}, options: FaultOptions = {}): Promise<Fault> {
    return this.#control.call('POST', '/_berth/faults', { match, effect, ...options })
  }

  async list(): Promise<Fault[]> {
    return (await this.#control.call<{ faults: Fault[] }>('GET', '/_berth/faults')).faults
  }

  async delete(id: string): Promise<void> {
    await this.#control.call('DELETE', `/_berth/faults/${encodeURIComponent(id)}`)
  }

  /** Removes all, of every account. */
  async clear(): Promise<void> {
    await this.#control.call('DELETE', '/_berth/faults')
  }
}

/** The clock, which metering, months, expiry and retries go by. It is one for the whole instance. */
export class ClockControl {
  readonly #control: BerthControl

  constructor(control: BerthControl) {
    this.#control = control
  }

  read(): Promise<Clock> {
    return this.#control.call('GET', '/_berth/clock')
  }

  /** Moves it on. @param duration such as `2h` or `31d` */
  advance(duration: string): Promise<Clock> {
    return this.#move({ advance: duration })
  }

  /** Moves it to a time. */
  set(time: string | Date): Promise<Clock> {
    return this.#move({ set: typeof time === 'string' ? time : time.toISOString() })
  }

  /** Has it stand still, or go on. */
  freeze(frozen = true): Promise<Clock> {
    return this.#move({ freeze: frozen })
  }

  /** Brings it back to real time. */
  reset(): Promise<Clock> {
    return this.#move({ reset: true })
  }

  #move(move: Taken<'/_berth/clock', 'post'>): Promise<Clock> {
    return this.#control.call('POST', '/_berth/clock', move)
  }
}

/** The scenarios of the scripted agent, which belong to the whole instance. */
export class Scenarios {
  readonly #control: BerthControl

  constructor(control: BerthControl) {
    this.#control = control
  }

  async list(): Promise<Returned<'/_berth/scenarios', 'get'>['scenarios']> {
    const list = await this.#control.call<Returned<'/_berth/scenarios', 'get'>>('GET', '/_berth/scenarios')
    return list.scenarios
  }

  /** Adds one before the others. */
  add(scenario: Scenario): Promise<Returned<'/_berth/scenarios', 'post', 201>> {
    return this.#control.call('POST', '/_berth/scenarios', scenario)
  }

  /** Puts these in place of all. */
  async replace(scenarios: readonly Scenario[]): Promise<void> {
    await this.#control.call('PUT', '/_berth/scenarios', { scenarios })
  }

  async clear(): Promise<void> {
    await this.#control.call('DELETE', '/_berth/scenarios')
  }
}

/** A receiver of webhooks, in berth itself. */
export class Inbox {
  readonly #control: BerthControl

  constructor(
    control: BerthControl,
    readonly name: string,
    /** Where to send webhooks. */
    readonly url: string,
  ) {
    this.#control = control
  }

  /** Lists what it received, the newest first. */
  async entries(): Promise<InboxEntry[]> {
    const path = `/_berth/inbox/${encodeURIComponent(this.name)}`
    return (await this.#control.call<{ entries: InboxEntry[] }>('GET', path)).entries
  }

  /** Waits until it has received `count` requests, and returns all, the newest first. */
  async wait({
    count,
    after,
    timeoutMs,
  }: {
    count?: number
    after?: string
    timeoutMs?: number
  } = {}): Promise<InboxEntry[]> {
    const what = {
      inbox: this.name,
      ...(count !== undefined && { count }),
      ...(after !== undefined && { after }),
    }
    const outcome = await this.#control.wait(what, timeoutMs === undefined ? {} : { timeoutMs })
    return (outcome as { entries?: InboxEntry[] }).entries ?? []
  }

  async clear(): Promise<void> {
    await this.#control.call('DELETE', `/_berth/inbox/${encodeURIComponent(this.name)}`)
  }
}
