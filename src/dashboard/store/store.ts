import type { ResponseOf } from '../../client/client.ts'
import type { Changes } from '../api/changes.ts'
import type { ApiClient } from '../api/client.ts'
import { Collection } from './collection.ts'

/** A server, as the API shows it. */
export type Server = ResponseOf<'servers.list'>['servers'][number]
/** A project, as the API shows it. */
export type Project = ResponseOf<'projects.listAll'>['projects'][number]
/** A task, as the API shows it. */
export type Task = ResponseOf<'tasks.listAll'>['tasks'][number]
/** A build, as the API shows it. */
export type Build = ResponseOf<'builds.listAll'>['builds'][number]
/** A terminal, as the API shows it. */
export type Terminal = ResponseOf<'terminals.list'>['terminals'][number]
/** An API key, as the API shows it. */
export type ApiKey = ResponseOf<'keys.list'>['keys'][number]
/** A webhook, as the API shows it. */
export type Webhook = ResponseOf<'webhooks.list'>['webhooks'][number]

/** What is known of the instance: each list is loaded when a screen first shows it, and then kept up to date. */
export class Store {
  readonly servers: Collection<Server>
  readonly projects: Collection<Project>
  readonly tasks: Collection<Task>
  readonly builds: Collection<Build>
  readonly keys: Collection<ApiKey>
  readonly webhooks: Collection<Webhook>
  readonly #api: ApiClient
  readonly #changes: Changes
  readonly #terminals = new Map<string, Collection<Terminal>>()

  constructor(api: ApiClient, changes: Changes) {
    this.#api = api
    this.#changes = changes
    const idOf = ({ id }: { id: string }): string => id
    this.servers = new Collection(changes, {
      type: 'server',
      idOf,
      load: async () => (await api.call('servers.list')).servers,
    })
    this.projects = new Collection(changes, {
      type: 'project',
      idOf,
      load: async () => (await api.call('projects.listAll')).projects,
    })
    this.tasks = new Collection(changes, {
      type: 'task',
      idOf,
      load: async () => (await api.call('tasks.listAll')).tasks,
    })
    this.builds = new Collection(changes, {
      type: 'build',
      idOf,
      load: async () => (await api.call('builds.listAll')).builds,
    })
    this.keys = new Collection(changes, {
      type: 'key',
      idOf,
      load: async () => (await api.call('keys.list')).keys,
    })
    this.webhooks = new Collection(changes, {
      type: 'webhook',
      idOf,
      load: async () => (await api.call('webhooks.list')).webhooks,
    })
  }

  /** The terminals of a server. */
  terminals(serverId: string): Collection<Terminal> {
    const known = this.#terminals.get(serverId)
    if (known) return known
    const terminals = new Collection<Terminal>(this.#changes, {
      type: 'terminal',
      idOf: ({ id }) => id,
      load: async () => (await this.#api.call('terminals.list', { params: { serverId } })).terminals,
      accepts: (change) => change.server_id === serverId,
    })
    this.#terminals.set(serverId, terminals)
    return terminals
  }
}
