import { Handle, type WaitOptions } from './handle.js'
import type { BuildData, BuildLine, Returned } from './shapes.js'
import { forEach } from './tasks.js'
import type { Transport } from './transport.js'

export interface Build extends Readonly<BuildData> {}

/** A goal that becomes an app with a URL. A build that failed is `completed` with a `url` of null. */
export class Build extends Handle<BuildData> {
  protected get path(): string {
    return `/servers/${this.serverId}/builds/${this.id}`
  }

  protected unwrap(body: unknown): BuildData {
    return (body as { build: BuildData }).build
  }

  /**
   * Waits until it is completed.
   *
   * @returns itself, whose `status` is not `completed` if the time is over
   */
  async wait(options: WaitOptions = {}): Promise<this> {
    await this.settle(() => this.status === 'completed', options)
    return this
  }

  /** Reads its log, to its end. A connection that breaks off goes on where it was. */
  async *logs(signal?: AbortSignal): AsyncGenerator<BuildLine> {
    const request = { path: `${this.path}/logs`, signal }
    for await (const { event, data } of this.transport.events(request, { resumes: true }))
      if (event === 'line') yield JSON.parse(data) as BuildLine
  }
}

/** The builds of a server. */
export class Builds {
  readonly #transport: Transport
  readonly #server: string

  constructor(transport: Transport, server: string) {
    this.#transport = transport
    this.#server = server
  }

  /** Lists them, the newest first. */
  async list(): Promise<Build[]> {
    const path = `${this.#server}/builds`
    const { builds } = await this.#transport.json<Returned<'/servers/{serverId}/builds', 'get'>>('GET', path)
    return builds.map((build) => new Build(this.#transport, build))
  }

  async get(id: string): Promise<Build> {
    const { build } = await this.#transport.json<Returned<'/servers/{serverId}/builds/{buildId}', 'get'>>(
      'GET',
      `${this.#server}/builds/${encodeURIComponent(id)}`,
    )
    return new Build(this.#transport, build)
  }

  /** Begins a build, or queues it behind others of the server, and returns at once. */
  async create(goal: string): Promise<Build> {
    const { build_id } = await this.#transport.json<Returned<'/servers/{serverId}/builds', 'post', 201>>(
      'POST',
      `${this.#server}/builds`,
      { goal },
    )
    return this.get(build_id)
  }

  /**
   * Builds, and waits for the end.
   *
   * @returns the build, whose `url` is null if it failed: its log says why
   */
  async run(goal: string, options: WaitOptions & { onLog?: (line: BuildLine) => void } = {}): Promise<Build> {
    const build = await this.create(goal)
    const read = options.onLog && forEach(build.logs(options.signal), options.onLog)
    // A failure is reported below, after the wait.
    read?.catch(() => {})
    await build.wait(options)
    if (build.status === 'completed') await read
    return build
  }
}
