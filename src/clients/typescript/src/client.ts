import createClient, { type Client } from 'openapi-fetch'
import { Build } from './builds.js'
import { changesOf } from './changes.js'
import type { paths } from './generated/schema.js'
import { Project } from './projects.js'
import { Server } from './server.js'
import type { Account, Change, KeyData, Returned, ServerCreate, Taken } from './shapes.js'
import { Task } from './tasks.js'
import { Transport } from './transport.js'
import { Webhooks } from './webhooks.js'

/** How often a request is tried again by default. */
const RETRIES = 2

/** Where berth is, and which key calls it. */
export interface BerthOptions {
  /** The address of the API; the variable `BERTH_BASE_URL` by default. */
  readonly baseUrl?: string
  /** An API key; the variable `BERTH_API_KEY` by default. */
  readonly apiKey?: string
  /** How often a request is tried again where that cannot do anything twice: 2 by default. */
  readonly retries?: number
}

/** The generated part: every operation by its path, with the types of the OpenAPI document. */
export type Api = Client<paths, 'application/json'>

/** A client of berth. */
export class Berth {
  /** The address of the API. */
  readonly baseUrl: string
  /** Every operation, also those without a method here. Failures are in `error` of the result, as openapi-fetch returns them. */
  readonly api: Api
  readonly servers: Servers
  readonly tasks: AllTasks
  readonly builds: AllBuilds
  readonly projects: AllProjects
  readonly keys: Keys
  readonly webhooks: Webhooks
  readonly #transport: Transport

  /** @throws Error if the address or the key is missing, or the address is no URL */
  constructor(options: BerthOptions = {}) {
    const baseUrl = options.baseUrl ?? process.env.BERTH_BASE_URL
    const credential = options.apiKey ?? process.env.BERTH_API_KEY
    if (!baseUrl || !credential)
      throw new Error(
        `${baseUrl ? 'BERTH_API_KEY' : 'BERTH_BASE_URL'} is not set. Run the program by "berth run -- …", take the variables of a running instance by eval "$(berth env)", or give baseUrl and apiKey.`,
      )
    const transport = new Transport({ baseUrl, credential, retries: options.retries ?? RETRIES })
    this.#transport = transport
    this.baseUrl = transport.baseUrl
    this.api = createClient<paths, 'application/json'>({ baseUrl: transport.baseUrl, fetch: transport.fetch })
    this.servers = new Servers(transport)
    this.tasks = new AllTasks(transport)
    this.builds = new AllBuilds(transport)
    this.projects = new AllProjects(transport)
    this.keys = new Keys(transport)
    this.webhooks = new Webhooks(transport)
  }

  /** Reads the account that the key belongs to: its plan, its budget and what it has used of it, and the key itself. */
  account(): Promise<Account> {
    return this.#transport.json('GET', '/account')
  }

  /** Lists the templates that projects start from. */
  async templates(): Promise<Returned<'/templates', 'get'>['templates']> {
    return (await this.#transport.json<Returned<'/templates', 'get'>>('GET', '/templates')).templates
  }

  /**
   * Reads the changes of everything that the key reaches, without end. The first is `ready`: load what you need after it. After a
   * lost connection, one with the type `gap` says that changes were missed.
   */
  changes({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<Change> {
    return changesOf(this.#transport, signal)
  }
}

/** The servers that a key reaches. */
export class Servers {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first. */
  async list(): Promise<Server[]> {
    const { servers } = await this.#transport.json<Returned<'/servers', 'get'>>('GET', '/servers')
    return servers.map((server) => new Server(this.#transport, server))
  }

  /** Provisions a server, which runs when this resolves. */
  async create(options: ServerCreate = {}): Promise<Server> {
    const { id } = await this.#transport.json<Returned<'/servers', 'post', 201>>('POST', '/servers', options)
    return this.get(id)
  }

  /** @throws NotFoundError if the key reaches no server with this id */
  async get(id: string): Promise<Server> {
    const path = `/servers/${encodeURIComponent(id)}`
    const { server } = await this.#transport.json<Returned<'/servers/{serverId}', 'get'>>('GET', path)
    return new Server(this.#transport, server)
  }
}

/** The tasks of all servers that a key reaches. */
export class AllTasks {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first. */
  async list(): Promise<Task[]> {
    const { tasks } = await this.#transport.json<Returned<'/tasks', 'get'>>('GET', '/tasks')
    return tasks.map((task) => new Task(this.#transport, task))
  }
}

/** The builds of all servers that a key reaches. */
export class AllBuilds {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first. */
  async list(): Promise<Build[]> {
    const { builds } = await this.#transport.json<Returned<'/builds', 'get'>>('GET', '/builds')
    return builds.map((build) => new Build(this.#transport, build))
  }
}

/** The projects of all servers that a key reaches. */
export class AllProjects {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first. */
  async list(): Promise<Project[]> {
    const { projects } = await this.#transport.json<Returned<'/projects', 'get'>>('GET', '/projects')
    return projects.map((project) => new Project(this.#transport, project))
  }

  /** @throws NotFoundError if the key reaches no project with this id */
  async get(id: string): Promise<Project> {
    const path = `/projects/${encodeURIComponent(id)}`
    return new Project(this.#transport, await this.#transport.json('GET', path))
  }
}

/** The API keys of an account. */
export class Keys {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Lists them, the newest first, without their plaintext. */
  async list(): Promise<KeyData[]> {
    return (await this.#transport.json<Returned<'/keys', 'get'>>('GET', '/keys')).keys
  }

  /** Creates a key. The result has its plaintext. */
  create(options: Taken<'/keys', 'post'>): Promise<Returned<'/keys', 'post', 201>> {
    return this.#transport.json('POST', '/keys', options)
  }

  /** Replaces what a key reaches. */
  update(id: string, scope: Taken<'/keys/{keyId}', 'patch'>): Promise<Returned<'/keys/{keyId}', 'patch'>> {
    return this.#transport.json('PATCH', `/keys/${encodeURIComponent(id)}`, scope)
  }

  /** Deletes a key, which ends at once. */
  async delete(id: string): Promise<void> {
    await this.#transport.json('DELETE', `/keys/${encodeURIComponent(id)}`)
  }
}
