import type { Answer, TestBerth } from './berth.ts'
import { readEvents, type ServerEvent } from './events.ts'
import { until } from './processes.ts'

/** A task as the API shows it. */
export interface TaskBody {
  id: string
  serverId: string
  goal: string
  status: string
  createdAt: string
  result?: string
  question?: string
}

/** An event of a transcript. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
export type TaskEvent = { seq: number; at: string; type: string } & Record<string, any>

/** The states in which a task is over. */
const OVER = ['completed', 'failed', 'cancelled']

/** Calls about the tasks of one server. */
export class TaskCalls {
  readonly #berth: TestBerth
  readonly path: string

  constructor(
    berth: TestBerth,
    readonly serverId: string,
  ) {
    this.#berth = berth
    this.path = `/servers/${serverId}/tasks`
  }

  /** POST with a goal. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  create(goal: unknown, headers?: Record<string, string>): Promise<Answer<any>> {
    return this.#berth.call('POST', this.path, { goal }, headers)
  }

  /** Gives a goal; resolves to the task's id. */
  async begin(goal: string): Promise<string> {
    const { status, body } = await this.create(goal)
    if (status !== 201) throw new Error(`no task: ${status} ${JSON.stringify(body)}`)
    return body.task_id
  }

  async get(id: string): Promise<TaskBody> {
    return (await this.#berth.call('GET', `${this.path}/${id}`)).body.task
  }

  async list(): Promise<TaskBody[]> {
    return (await this.#berth.call('GET', this.path)).body.tasks
  }

  /** Resolves to the task when it is in this state. */
  async reaches(id: string, status: string): Promise<TaskBody> {
    let task = await this.get(id)
    await until(async () => {
      task = await this.get(id)
      if (OVER.includes(task.status) && task.status !== status)
        throw new Error(`it is ${JSON.stringify(task)}`)
      return task.status === status
    }, `task ${id} is ${status}`)
    return task
  }

  /** Resolves to the task when it is over. */
  async ends(id: string): Promise<TaskBody> {
    let task = await this.get(id)
    await until(
      async () => {
        task = await this.get(id)
        return OVER.includes(task.status)
      },
      `task ${id} is over`,
      20_000,
    )
    return task
  }

  /** Gives a goal and resolves to the task as it is in the end. */
  async run(goal: string): Promise<TaskBody> {
    return this.ends(await this.begin(goal))
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  answer(id: string, answer: unknown): Promise<Answer<any>> {
    return this.#berth.call('POST', `${this.path}/${id}/input`, { answer })
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  cancel(id: string): Promise<Answer<any>> {
    return this.#berth.call('POST', `${this.path}/${id}/cancel`)
  }

  /** The transcript as JSON. */
  async events(id: string, query = ''): Promise<TaskEvent[]> {
    return (await this.#berth.call('GET', `${this.path}/${id}/events${query}`)).body.events
  }

  /** Begins to follow the transcript. */
  async follow(id: string, query = '', init: RequestInit = {}): Promise<Followed> {
    const headers = { accept: 'text/event-stream', ...(init.headers as object) }
    const response = await this.#berth.fetch(`${this.path}/${id}/events${query}`, { ...init, headers })
    if (response.status !== 200) throw new Error(`no stream: ${response.status} ${await response.text()}`)
    return new Followed(response)
  }

  /** Returns the names of a task's events that webhooks receive, oldest first. */
  async told(id: string): Promise<string[]> {
    const { events } = (await this.#berth.control('GET', '/events?limit=1000')).body
    return events
      .filter(({ data }: { data: { task_id?: string } }) => data.task_id === id)
      .map(({ event }: { event: string }) => event)
      .reverse()
  }
}

/** A transcript that is being followed. */
export class Followed {
  readonly #events: AsyncGenerator<ServerEvent>
  /** All that has come so far. */
  readonly all: ServerEvent[] = []

  constructor(response: Response) {
    this.#events = readEvents(response)
  }

  /** Reads on until one comes that is meant; resolves to it. */
  async until(isMeant: (event: ServerEvent) => boolean): Promise<ServerEvent> {
    for (;;) {
      const { value, done } = await this.#events.next()
      if (done) throw new Error(`the stream ended: ${JSON.stringify(this.all)}`)
      this.all.push(value)
      if (isMeant(value)) return value
    }
  }

  /** Reads to the end; resolves to all that has come. */
  async rest(): Promise<ServerEvent[]> {
    for await (const event of this.#events) this.all.push(event)
    return this.all
  }

  /** The numbers of the events that are kept. */
  get seqs(): number[] {
    return this.all.flatMap(({ data }) => ('seq' in data ? [data.seq] : []))
  }

  /** What was printed on a stream by all commands, as it came. */
  printed(stream: string): string {
    return this.all
      .filter(({ event, data }) => event === 'output' && data.stream === stream)
      .map(({ data }) => data.text)
      .join('')
  }
}

/** Sets the scenarios of the scripted agent. */
export async function setScenarios(berth: TestBerth, scenarios: object[]): Promise<void> {
  const { status, body } = await berth.control('PUT', '/scenarios', { scenarios })
  if (status !== 200) throw new Error(JSON.stringify(body))
}
