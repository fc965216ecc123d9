import { HttpError } from './http.ts'

export interface Task {
  id: string
  title: string
  done: boolean
  /** ISO 8601, UTC. */
  created_at: string
}

/** What a caller may say of a task. */
export type TaskChanges = Partial<Pick<Task, 'title' | 'done'>>

const MAX_TITLE = 200

/** Tasks in memory: they are gone when the process ends. Put a database behind these methods to keep them. */
export class TaskStore {
  readonly #tasks = new Map<string, Task>()

  constructor(readonly limit: number) {}

  /** Oldest first; all of them, or only those that are done, or only those that are not. */
  list(done?: boolean): Task[] {
    return [...this.#tasks.values()].filter((task) => done === undefined || task.done === done)
  }

  get(id: string): Task | undefined {
    return this.#tasks.get(id)
  }

  add({ title, done = false }: TaskChanges & { title: string }): Task {
    if (this.#tasks.size >= this.limit) {
      throw new HttpError(409, 'too_many_tasks', `There are ${this.limit} tasks already. Delete one first.`)
    }
    const task = { id: crypto.randomUUID(), title, done, created_at: new Date().toISOString() }
    this.#tasks.set(task.id, task)
    return task
  }

  update(id: string, changes: TaskChanges): Task | undefined {
    const task = this.#tasks.get(id)
    return task && Object.assign(task, changes)
  }

  remove(id: string): void {
    this.#tasks.delete(id)
  }
}

/** Checks the body that makes a task. @throws HttpError 400 that names the field */
export function parseNewTask(body: unknown): TaskChanges & { title: string } {
  const { title, ...rest } = parseChanges(body)
  if (title === undefined) throw invalid('"title" is missing.')
  return { title, ...rest }
}

/** Checks the body that changes a task. @throws HttpError 400 that names the field */
export function parseChanges(body: unknown): TaskChanges {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('Send a JSON object.')
  const { title, done, ...unknown } = body as Record<string, unknown>
  const [name] = Object.keys(unknown)
  if (name !== undefined) throw invalid(`There is no field ${JSON.stringify(name)}.`)
  const changes: TaskChanges = {}
  if (title !== undefined) changes.title = parseTitle(title)
  if (done !== undefined) {
    if (typeof done !== 'boolean') throw invalid('"done" is true or false.')
    changes.done = done
  }
  return changes
}

function parseTitle(value: unknown): string {
  const title = typeof value === 'string' ? value.trim() : ''
  if (title === '' || title.length > MAX_TITLE) {
    throw invalid(`"title" is a text of 1 to ${MAX_TITLE} characters.`)
  }
  return title
}

const invalid = (message: string) => new HttpError(400, 'bad_request', message)
