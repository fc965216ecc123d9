import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { arrayBuffer } from 'node:stream/consumers'
import { type DirectoryOptions, type Entry, entriesOf, type Piece, pack } from './archive.js'
import { ProjectFailedError } from './errors.js'
import { gone, Handle, type WaitOptions } from './handle.js'
import type { ProjectCreate, ProjectData, ProjectLine, Returned, Taken } from './shapes.js'
import { type Transport, whole, withQuery } from './transport.js'

/** How many bytes of files one request of a push sends, before they are packed. */
const PART_BYTES = 24 * 1024 * 1024

/** Phases in which a bring-up has ended, or waits for variables. */
const SETTLED = ['ready', 'failed', 'awaiting_secrets', null]

/** What a new project is, and where its code comes from. */
export interface ProjectOptions extends ProjectCreate, DirectoryOptions, WaitOptions {
  /** A local directory whose files are the code. `.git` and `node_modules` are not sent. */
  readonly directory?: string
  /** Whether to wait until it is ready, or waits for variables. True by default. */
  readonly wait?: boolean
}

/** What a push did. */
export type PushResult = Omit<Returned<'/projects/{projectId}/push', 'post'>, 'missing' | 'project'>

export interface Project extends Readonly<ProjectData> {}

/** A project: code on a server, and its app behind a URL. `await using` deletes it at the end of its block. */
export class Project extends Handle<ProjectData> implements AsyncDisposable {
  protected get path(): string {
    return `/projects/${this.id}`
  }

  protected unwrap(body: unknown): ProjectData {
    return body as ProjectData
  }

  /**
   * Waits until its app is ready, or its bring-up waits for variables (`init_phase` is `awaiting_secrets`).
   *
   * @returns itself, whose `init_phase` is another if the time is over
   * @throws ProjectFailedError with the end of the log if the bring-up failed
   */
  async wait(options: WaitOptions = {}): Promise<this> {
    await this.settle(() => SETTLED.includes(this.init_phase), options)
    if (this.init_phase !== 'failed') return this
    const path = withQuery(`${this.path}/logs`, { tail: 20 })
    const { logs } = await this.transport.json<Returned<'/projects/{projectId}/logs', 'get'>>('GET', path)
    const phase = this.init_phases?.at(-2)?.phase ?? null
    const end = logs.map(({ text }) => text).join('\n')
    throw new ProjectFailedError(`${this.name} failed in its phase ${phase}:\n${end}`, this.id, phase, end)
  }

  /** Changes its name, description, visibility or lifecycle. */
  async update(changes: Taken<'/projects/{projectId}', 'patch'>): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('PATCH', this.path, changes)))
  }

  /** Deletes the project with its files. */
  async delete(): Promise<void> {
    await this.transport.json('DELETE', this.path)
  }

  /** Removes an ephemeral project. */
  async cleanup(): Promise<void> {
    await this.transport.json('POST', `${this.path}/cleanup`)
  }

  /** Begins a new bring-up, or continues one that waits for variables. */
  async init(options: Taken<'/projects/{projectId}/init', 'post'> = {}): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('POST', `${this.path}/init`, options)))
  }

  /** Starts its app again as it was built. */
  async restart(): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('POST', `${this.path}/restart`)))
  }

  /** Sets variables of its app. A bring-up that waits for them continues; an app that runs is restarted. */
  async setSecrets(secrets: Readonly<Record<string, string>>): Promise<void> {
    await this.transport.json('PUT', `${this.path}/secrets`, { secrets })
  }

  /** Reads the log of its bring-ups and its app, and follows it without end. */
  async *logs(
    options: { tail?: number; since?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<ProjectLine> {
    const { signal, ...query } = options
    const request = { path: withQuery(`${this.path}/logs`, query), signal }
    for await (const { event, data } of this.transport.events(request, { resumes: true }))
      if (event === 'line') yield JSON.parse(data) as ProjectLine
  }

  /**
   * Makes its code what a local directory has: sends the files that differ, removes those that are gone, and installs, builds and
   * restarts as far as necessary.
   *
   * @returns how many files were written and removed, and the phase that began; null if the app goes on
   * @throws ProjectFailedError if the new version does not come up; the one before goes on
   */
  async push(
    directory: string,
    options: DirectoryOptions & WaitOptions & { wait?: boolean } = {},
  ): Promise<PushResult> {
    const { wait = true, timeoutMs, signal, ...directoryOptions } = options
    const entries = await entriesOf(directory, directoryOptions)
    const description = await describe(directory, entries)
    let pushed = await this.transport.json<Returned<'/projects/{projectId}/push', 'post'>>(
      'POST',
      `${this.path}/push`,
      description,
      signal,
    )
    const missing = new Set(pushed.missing)
    for (const part of partsOf(entries.filter(({ path }) => missing.has(path)))) {
      const form = new FormData()
      form.set('files', JSON.stringify(description.files))
      form.set('links', JSON.stringify(description.links))
      if (part.pieces.length > 0)
        form.set('pieces', JSON.stringify(part.pieces.map(({ size: _, ...piece }) => piece)))
      const pieces = new Map(part.pieces.map((piece) => [piece.path, piece]))
      form.set('archive', new Blob([await arrayBuffer(pack(directory, part.entries, pieces))]), 'push.tar.gz')
      pushed = await sendForm(this.transport, `${this.path}/push`, form, signal)
    }
    this.assign(pushed.project)
    if (wait && pushed.began !== null)
      await this.wait({ ...(timeoutMs !== undefined && { timeoutMs }), ...(signal && { signal }) })
    const { written, removed, began } = pushed
    return { written, removed, began }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await gone(this.delete())
  }
}

/** The projects of a server. */
export class Projects {
  readonly #transport: Transport
  readonly #server: string

  constructor(transport: Transport, server: string) {
    this.#transport = transport
    this.#server = server
  }

  /** Lists them, the newest first. */
  async list(): Promise<Project[]> {
    const path = `${this.#server}/projects`
    const { projects } = await this.#transport.json<Returned<'/servers/{serverId}/projects', 'get'>>(
      'GET',
      path,
    )
    return projects.map((project) => new Project(this.#transport, project))
  }

  /**
   * Creates a project from a local directory, a template, a repository or nothing, and waits until its app is ready.
   *
   * @throws ProjectFailedError with the end of the log if it does not become ready; the project stays
   */
  async create(options: ProjectOptions = {}): Promise<Project> {
    const { directory, filter, wait = true, timeoutMs, signal, ...body } = options
    const path = `${this.#server}/projects`
    let data: ProjectData
    if (directory === undefined) data = await this.#transport.json('POST', path, body, signal)
    else {
      const form = new FormData()
      for (const [name, value] of Object.entries(body))
        if (value !== undefined) form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
      const entries = await entriesOf(directory, filter ? { filter } : {})
      form.set('archive', new Blob([await arrayBuffer(pack(directory, entries))]), 'code.tar.gz')
      data = await sendForm(this.#transport, path, form, signal)
    }
    const project = new Project(this.#transport, data)
    return wait
      ? project.wait({ ...(timeoutMs !== undefined && { timeoutMs }), ...(signal && { signal }) })
      : project
  }
}

/** Sends a form. Its bytes are made once, so a repetition sends the same. */
async function sendForm<Result>(
  transport: Transport,
  path: string,
  form: FormData,
  signal?: AbortSignal,
): Promise<Result> {
  const encoded = new Response(form)
  const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
  const body = new Uint8Array(await encoded.arrayBuffer())
  const response = await transport.send({ method: 'POST', path, headers, body, signal })
  return (await whole(response.json(), signal)) as Result
}

/** Describes the files and links of a directory for a push. */
async function describe(directory: string, entries: readonly Entry[]) {
  const files: { path: string; sha256: string; executable: boolean }[] = []
  for (const { path, kind, executable } of entries) {
    if (kind !== 'file') continue
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(join(directory, path))) hash.update(chunk as Buffer)
    files.push({ path, sha256: hash.digest('hex'), executable })
  }
  const links = entries.filter(({ kind }) => kind === 'link').map(({ path, target }) => ({ path, target }))
  return { files, links }
}

/** What one request of a push sends. */
interface Part {
  readonly entries: Entry[]
  readonly pieces: (Piece & { path: string; more: boolean })[]
}

/** Divides entries into parts that fit into a request; a file that is too large for one becomes pieces. */
function partsOf(entries: readonly Entry[]): Part[] {
  const parts: Part[] = []
  let room = 0
  for (const entry of entries) {
    let offset = 0
    do {
      if (room === 0 || (offset === 0 && entry.size > room && entry.size <= PART_BYTES)) {
        parts.push({ entries: [], pieces: [] })
        room = PART_BYTES
      }
      const part = parts.at(-1)
      const size = Math.min(entry.size - offset, room)
      const more = offset + size < entry.size
      part?.entries.push(entry)
      if (offset > 0 || more) part?.pieces.push({ path: entry.path, offset, size, more })
      offset += size
      room -= size
    } while (offset < entry.size)
  }
  return parts
}
