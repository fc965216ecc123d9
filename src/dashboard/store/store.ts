import type { Browser, Program } from '../../resources/accounts/access-model.ts'
import type { Build } from '../../resources/builds/model.ts'
import type { Deployment } from '../../resources/deployments/model.ts'
import type { Execution } from '../../resources/exec/model.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { Server } from '../../resources/servers/model.ts'
import type { Task } from '../../resources/tasks/model.ts'
import type { Terminal } from '../../resources/terminals/model.ts'
import type { Webhook } from '../../resources/webhooks/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Delivery, EmittedEvent, Fault, Snapshot } from '../../testing/testing.ts'
import type { ChangeStream, LiveChange } from '../api/changes.ts'
import type { ApiClient } from '../api/client.ts'
import { Collection } from './collection.ts'
import { History } from './history.ts'

export type {
  ApiKey,
  Browser,
  Build,
  Delivery,
  Deployment,
  EmittedEvent,
  Execution,
  Fault,
  Program,
  Project,
  Server,
  Snapshot,
  Task,
  Terminal,
  Webhook,
}

/** A request, as lists show it: without its bodies. */
export type JournalRequest = Omit<
  ResponseOf<'control.requests.list'>['requests'][number],
  'request' | 'response'
>
/** A request with its response, as the journal shows it. */
export type WholeRequest = ResponseOf<'control.requests.get'>
/** Reports whether a fault has applied as often as it may, so that it applies no more. */
export const isSpent = ({ hits, times }: Fault): boolean => times !== null && hits >= times
/** The faults inside a server. */
export interface ServerFaults {
  readonly server_id: string
  readonly faults: ResponseOf<'control.serverFaults.list'>['faults']
}
/** An inbox that has got something. */
export type Inbox = ResponseOf<'control.inbox.list'>['inboxes'][number]
/** Whether webhooks may lead to this machine. */
export type LocalWebhooksState = ResponseOf<'control.localWebhooks.get'>
/** An account, as the control API shows it. */
export type NamedAccount = Pick<ResponseOf<'control.accounts.list'>['accounts'][number], 'id' | 'label'>

/** What the account has used of its budget in this month, in credits. */
export interface AccountBudget {
  readonly id: string
  readonly credits_used: number
  readonly budget_cap: number
}

/** Most requests, events and deliveries that are kept in the page. @bound program */
const MOST = 10_000

/** What is known of the instance: each list is loaded when a screen first shows it, and then kept up to date. */
export class Store {
  readonly servers: Collection<Server>
  readonly projects: Collection<Project>
  readonly tasks: Collection<Task>
  readonly builds: Collection<Build>
  readonly keys: Collection<ApiKey>
  readonly webhooks: Collection<Webhook>
  readonly programs: Collection<Program>
  readonly browsers: Collection<Browser>
  /** Of the instance's owner only: requests to the API, what was emitted and delivered, and what tests have set. */
  readonly requests: History<JournalRequest>
  readonly events: History<EmittedEvent>
  readonly deliveries: History<Delivery>
  readonly faults: Collection<Fault>
  readonly accounts: Collection<NamedAccount>
  /** Of the account of the session: one object. */
  readonly budget: Collection<AccountBudget>
  readonly snapshots: Collection<Snapshot>
  readonly inboxes: Collection<Inbox>
  /** Of the instance: one object. */
  readonly localWebhooks: Collection<LocalWebhooksState>
  readonly #api: ApiClient
  readonly #changes: ChangeStream
  readonly #terminals = new Map<string, Collection<Terminal>>()
  readonly #executions = new Map<string, Collection<Execution>>()
  readonly #deployments = new Map<string, Collection<Deployment>>()
  readonly #serverFaults = new Map<string, Collection<ServerFaults>>()

  /** @param accountId the account of the session */
  constructor(api: ApiClient, changes: ChangeStream, accountId: string) {
    this.#api = api
    this.#changes = changes
    this.servers = this.#list('server', async () => (await api.call('servers.list')).servers)
    this.projects = this.#list('project', async () => (await api.call('projects.listAll')).projects)
    this.tasks = this.#list('task', async () => (await api.call('tasks.listAll')).tasks)
    this.builds = this.#list('build', async () => (await api.call('builds.listAll')).builds)
    this.keys = this.#list('key', async () => (await api.call('keys.list')).keys)
    this.webhooks = this.#list('webhook', async () => (await api.call('webhooks.list')).webhooks)
    this.programs = this.#list('program', async () => (await api.call('programs.list')).programs)
    this.browsers = this.#list('browser', async () => (await api.call('browsers.list')).browsers)
    const history = { idOf, most: MOST }
    this.requests = new History(changes, {
      ...history,
      type: 'request',
      load: async (limit) =>
        (await api.call('control.requests.list', { query: { limit, bodies: 'false' } })).requests,
    })
    this.events = new History(changes, {
      ...history,
      type: 'event',
      load: async (limit) => (await api.call('control.events.list', { query: { limit } })).events,
    })
    this.deliveries = new History(changes, {
      ...history,
      type: 'delivery',
      load: async (limit) => (await api.call('control.deliveries.list', { query: { limit } })).deliveries,
    })
    this.faults = this.#list('fault', async () => (await api.call('control.faults.list')).faults)
    this.snapshots = new Collection(changes, {
      type: 'snapshot',
      idOf: ({ name }: Snapshot) => name,
      load: async () => (await api.call('control.snapshots.list')).snapshots,
    })
    this.inboxes = new Collection(changes, {
      type: 'inbox',
      idOf: ({ name }: Inbox) => name,
      load: async () => (await api.call('control.inbox.list')).inboxes,
    })
    this.localWebhooks = new Collection<LocalWebhooksState>(changes, {
      type: 'local_webhooks',
      idOf: () => 'local-webhooks',
      load: async () => [await api.call('control.localWebhooks.get')],
    })
    this.budget = new Collection<AccountBudget>(changes, {
      type: 'account',
      idOf,
      accepts: ({ id }) => id === accountId,
      load: async () => [
        { id: accountId, ...(await api.call('usage.account', { query: { days: 1 } })).usage },
      ],
    })
    this.accounts = this.#list<NamedAccount>(
      'account',
      async () => (await api.call('control.accounts.list')).accounts,
    )
  }

  /** Returns the object that a change is about, as it is known; undefined if it is not. */
  known({ type, id }: LiveChange): unknown {
    switch (type) {
      case 'server':
        return this.servers.get(id)
      case 'project':
        return this.projects.get(id)
      case 'task':
        return this.tasks.get(id)
      case 'build':
        return this.builds.get(id)
      default:
        return undefined
    }
  }

  /** The terminals of a server. */
  terminals(serverId: string): Collection<Terminal> {
    const load = async () => (await this.#api.call('terminals.list', { params: { serverId } })).terminals
    return kept(this.#terminals, serverId, () => this.#list('terminal', load, serverId))
  }

  /** The executions of a server. */
  executions(serverId: string): Collection<Execution> {
    const load = async () => (await this.#api.call('executions.list', { params: { serverId } })).executions
    return kept(this.#executions, serverId, () => this.#list('execution', load, serverId))
  }

  /** What a server publishes: one deployment at most. */
  deployment(serverId: string): Collection<Deployment> {
    return kept(
      this.#deployments,
      serverId,
      () =>
        new Collection<Deployment>(this.#changes, {
          type: 'deployment',
          idOf: () => serverId,
          load: async () => (await this.#api.call('deployments.list', { params: { serverId } })).deployments,
          accepts: ({ id }) => id === serverId,
        }),
    )
  }

  /** The faults inside a server: one object, none without faults. For the instance's owner only. */
  serverFaults(serverId: string): Collection<ServerFaults> {
    return kept(
      this.#serverFaults,
      serverId,
      () =>
        new Collection<ServerFaults>(this.#changes, {
          type: 'server_fault',
          idOf: ({ server_id: id }) => id,
          load: async () => {
            // One that was deleted meanwhile has none.
            if (this.servers.state.peek() === 'ready' && this.servers.get(serverId) === undefined) return []
            const { faults } = await this.#api.call('control.serverFaults.list', { params: { serverId } })
            return [{ server_id: serverId, faults }]
          },
          accepts: ({ id }) => id === serverId,
        }),
    )
  }

  /** Returns the objects of a type, those of one server if its id is given. */
  #list<Value extends { readonly id: string }>(
    type: string,
    load: () => Promise<readonly Value[]>,
    serverId?: string,
  ): Collection<Value> {
    const accepts = ({ server_id: of }: LiveChange): boolean => serverId === undefined || of === serverId
    return new Collection<Value>(this.#changes, { type, idOf, load, accepts })
  }
}

const idOf = ({ id }: { readonly id: string }): string => id

/** Returns the value of a key, which is made at first. */
function kept<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const known = values.get(key)
  if (known !== undefined) return known
  const value = make()
  values.set(key, value)
  return value
}
