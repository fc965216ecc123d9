import { Handle, type WaitOptions } from './handle.js'
import type { Returned, TaskData, TaskEvent } from './shapes.js'
import type { Transport } from './transport.js'

/** How a task is carried out. */
export interface TaskRunOptions extends WaitOptions {
  /**
   * Answers a question of the agent. Without it, or if it returns undefined, the task is returned while it waits for the answer.
   */
  readonly onQuestion?: (question: string, task: Task) => string | undefined | Promise<string | undefined>
  /** Gets the entries of the transcript as they arrive. */
  readonly onEvent?: (event: TaskEvent) => void
}

export interface Task extends Readonly<TaskData> {}

/** A goal that an agent works on. */
export class Task extends Handle<TaskData> {
  protected get path(): string {
    return `/servers/${this.serverId}/tasks/${this.id}`
  }

  protected unwrap(body: unknown): TaskData {
    return (body as { task: TaskData }).task
  }

  /** Answers its question. */
  async answer(answer: string): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('POST', `${this.path}/input`, { answer })))
  }

  /** Cancels it: its command ends before this resolves. */
  async cancel(): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('POST', `${this.path}/cancel`)))
  }

  /**
   * Waits until it is completed, failed or cancelled, or asks.
   *
   * @returns itself, whose `status` is still `running` if the time is over
   */
  async wait(options: WaitOptions = {}): Promise<this> {
    await this.settle(() => this.status !== 'running', options)
    return this
  }

  /** Reads its transcript, to its end. A connection that breaks off goes on where it was. */
  async *events(signal?: AbortSignal): AsyncGenerator<TaskEvent> {
    const request = { path: `${this.path}/events`, signal }
    // Events without an id are pieces of what an entry has whole.
    for await (const { id, data } of this.transport.events(request, { resumes: true }))
      if (id !== null) yield JSON.parse(data) as TaskEvent
  }
}

/** The tasks of a server. */
export class Tasks {
  readonly #transport: Transport
  readonly #server: string

  constructor(transport: Transport, server: string) {
    this.#transport = transport
    this.#server = server
  }

  /** Lists them, the newest first. */
  async list(): Promise<Task[]> {
    const path = `${this.#server}/tasks`
    const { tasks } = await this.#transport.json<Returned<'/servers/{serverId}/tasks', 'get'>>('GET', path)
    return tasks.map((task) => new Task(this.#transport, task))
  }

  async get(id: string): Promise<Task> {
    const { task } = await this.#transport.json<Returned<'/servers/{serverId}/tasks/{taskId}', 'get'>>(
      'GET',
      `${this.#server}/tasks/${encodeURIComponent(id)}`,
    )
    return new Task(this.#transport, task)
  }

  /** Gives the agent a goal, and returns at once. */
  async create(goal: string): Promise<Task> {
    const { task_id } = await this.#transport.json<Returned<'/servers/{serverId}/tasks', 'post', 201>>(
      'POST',
      `${this.#server}/tasks`,
      { goal },
    )
    return this.get(task_id)
  }

  /**
   * Gives the agent a goal and waits for its end. A task that fails is no error: see `status`.
   *
   * @returns the task: completed, failed or cancelled; awaiting input if a question was not answered; running if the time was over
   */
  async run(goal: string, options: TaskRunOptions = {}): Promise<Task> {
    const { onQuestion, onEvent, signal } = options
    const task = await this.create(goal)
    const read = onEvent && forEach(task.events(signal), onEvent)
    // A failure is reported below, after the wait.
    read?.catch(() => {})
    while (true) {
      await task.wait(options)
      if (task.status !== 'awaiting_input') break
      const answer = await onQuestion?.(task.question ?? '', task)
      if (answer === undefined) return task
      await task.answer(answer)
    }
    if (task.status !== 'running') await read
    return task
  }
}

/** Calls a function with each item. */
export async function forEach<Item>(items: AsyncIterable<Item>, take: (item: Item) => void): Promise<void> {
  for await (const item of items) take(item)
}
