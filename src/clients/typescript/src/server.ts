import { Builds } from './builds.js'
import { ConnectionError, errorOfEvent } from './errors.js'
import { Execution } from './execution.js'
import { Files } from './files.js'
import { gone, Handle } from './handle.js'
import { OutputCollector, type OutputEvent } from './output.js'
import { Projects } from './projects.js'
import type { Returned, ServerData, Taken } from './shapes.js'
import { readEvents } from './stream.js'
import { Tasks } from './tasks.js'
import type { Transport } from './transport.js'

/** How a command runs. */
export interface ExecOptions {
  /** A directory inside the workspace. */
  readonly cwd?: string
  /** Variables on top of the base environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Text for standard input, which is empty by default. */
  readonly stdin?: string
  /** Milliseconds after which the command is ended; 10 minutes by default. */
  readonly timeoutMs?: number
  /** Gets standard output as the command prints it. */
  readonly onStdout?: (text: string) => void
  /** Gets standard error as the command prints it. */
  readonly onStderr?: (text: string) => void
  /** Ends the command. */
  readonly signal?: AbortSignal
}

/** What came of a command. One that fails is no error: see `exitCode`. */
export interface ExecResult {
  /** Standard output as text, with U+FFFD for bytes that are not UTF-8. */
  readonly stdout: string
  readonly stderr: string
  /** The exact bytes of standard output. */
  readonly stdoutBytes: Uint8Array
  readonly stderrBytes: Uint8Array
  /** 128+n if signal n ended the command. */
  readonly exitCode: number
  readonly timedOut: boolean
  /** Whether a stream had more than the 10 MiB that are kept. */
  readonly truncated: boolean
  /** Connections of the server that berth refused meanwhile, each with a remedy. */
  readonly refused: readonly { destination: string; reason: string; remedy: string }[]
}

/** How an execution begins. */
export type ExecuteOptions = Omit<Taken<'/servers/{serverId}/exec', 'post'>, 'command' | 'detach'>

export interface Server extends Readonly<ServerData> {}

/** A server: runs commands, keeps files, and has tasks, builds and projects. `await using` deletes it at the end of its block. */
export class Server extends Handle<ServerData> implements AsyncDisposable {
  readonly files!: Files
  readonly tasks!: Tasks
  readonly builds!: Builds
  readonly projects!: Projects
  readonly deployments!: Deployments

  constructor(transport: Transport, data: ServerData) {
    super(transport, data)
    const part = (value: object) => ({ value, enumerable: false })
    Object.defineProperties(this, {
      files: part(new Files(transport, this.path)),
      tasks: part(new Tasks(transport, this.path)),
      builds: part(new Builds(transport, this.path)),
      projects: part(new Projects(transport, this.path)),
      deployments: part(new Deployments(transport, this.path)),
    })
  }

  protected get path(): string {
    return `/servers/${this.id}`
  }

  protected unwrap(body: unknown): ServerData {
    return (body as { server: ServerData }).server
  }

  /**
   * Runs a shell command to its end. Its output arrives while it runs; a connection that breaks off is an error, and ends the
   * command. A request that may have reached berth is never sent twice.
   *
   * @throws ConnectionError if the connection breaks off before the command has ended
   */
  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const { onStdout, onStderr, signal, ...rest } = options
    const response = await this.transport.send({
      method: 'POST',
      path: `${this.path}/exec`,
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ command, ...rest }),
      signal,
    })
    const collected = new OutputCollector({ onStdout, onStderr })
    for await (const { event, data } of readEvents(response, signal)) {
      if (event === 'error') throw errorOfEvent(data, response.headers.get('x-request-id'))
      if (event === 'stdout' || event === 'stderr') collected.take(event, JSON.parse(data) as OutputEvent)
      if (event === 'exit') return collected.result(JSON.parse(data))
    }
    throw new ConnectionError('The connection broke off before the command ended.')
  }

  /** Starts a shell command that goes on by itself, until it ends or is deleted. */
  async execute(command: string, options: ExecuteOptions = {}): Promise<Execution> {
    const body = { command, ...options, detach: true }
    const started = await this.transport.json<Returned<'/servers/{serverId}/exec', 'post', 202>>(
      'POST',
      `${this.path}/exec`,
      body,
    )
    return new Execution(this.transport, started.execution)
  }

  /** Lists the executions of the server, the newest first. */
  async executions(): Promise<Execution[]> {
    const path = `${this.path}/executions`
    const { executions } = await this.transport.json<Returned<'/servers/{serverId}/executions', 'get'>>(
      'GET',
      path,
    )
    return executions.map((execution) => new Execution(this.transport, execution))
  }

  /** Starts the server if it sleeps. */
  start(): Promise<this> {
    return this.#act('start')
  }

  /** Ends all processes of the server. Its files stay, and the next command wakes it. */
  stop(): Promise<this> {
    return this.#act('stop')
  }

  /** Stops the server and starts it. */
  restart(): Promise<this> {
    return this.#act('restart')
  }

  /** Changes its label or its region. */
  async update(changes: Taken<'/servers/{serverId}', 'patch'>): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('PATCH', this.path, changes)))
  }

  /** Sets variables of all commands and apps of the server, and restarts its apps. */
  async setSecrets(secrets: Readonly<Record<string, string>>): Promise<void> {
    await this.transport.json('PUT', '/secrets', { server_id: this.id, secrets })
  }

  /** Deletes the server with everything on it. */
  async delete(): Promise<void> {
    await this.transport.json('DELETE', this.path)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await gone(this.delete())
  }

  async #act(action: 'start' | 'stop' | 'restart'): Promise<this> {
    await this.transport.json('POST', `${this.path}/actions`, { action })
    return this.refresh()
  }
}

/** What is published of a server: the app in its workspace, or its files. */
export class Deployments {
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, server: string) {
    this.#transport = transport
    this.#path = `${server}/deployments`
  }

  async list(): Promise<Returned<'/servers/{serverId}/deployments', 'get'>['deployments']> {
    const { deployments } = await this.#transport.json<Returned<'/servers/{serverId}/deployments', 'get'>>(
      'GET',
      this.#path,
    )
    return deployments
  }

  /**
   * Publishes the workspace, and returns its URL when that responds.
   *
   * @throws ComputeBackendError with the end of its log if the app does not come up
   */
  create(
    options: Taken<'/servers/{serverId}/deployments', 'post'> = {},
  ): Promise<Returned<'/servers/{serverId}/deployments', 'post', 201>> {
    return this.#transport.json('POST', this.#path, options)
  }

  /** Takes the deployment back. */
  async delete(): Promise<void> {
    await this.#transport.json('DELETE', this.#path)
  }
}
