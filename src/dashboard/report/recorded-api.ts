import type { RecordedRun } from '../../http/dashboard/report-page.ts'
import type { HttpRequest } from '../../route-client/client.ts'
import { ApiClient } from '../api/client.ts'
import { type PageContext, Session } from '../api/session.ts'
import type { WholeRequest } from '../store/store.ts'
import type { RecordedObjects } from './objects.ts'

/** Responds to the calls of screens with what was recorded of a run. Nothing can be changed. */
export class RecordedApi extends ApiClient {
  readonly #recorded: RecordedRun
  readonly #objects: RecordedObjects

  constructor(recorded: RecordedRun, objects: RecordedObjects, context: PageContext) {
    super(context, new Session())
    this.#recorded = recorded
    this.#objects = objects
  }

  override async request({ method, path }: HttpRequest): Promise<Response> {
    const [pathname = ''] = path.split('?', 1)
    const [, taskId] = /^\/servers\/[^/]+\/tasks\/([^/]+)\/events$/.exec(pathname) ?? []
    if (taskId !== undefined) return eventsOf(this.#recorded.transcripts[taskId] ?? [])
    const value = method === 'GET' ? this.#read(pathname) : undefined
    return value === undefined
      ? Response.json({ error: 'not_found', message: 'The report does not have it.' }, { status: 404 })
      : Response.json(value)
  }

  #read(path: string): object | undefined {
    const { requests, events, deliveries } = this.#recorded
    switch (path) {
      case '/servers':
        return { servers: this.#objects.list('server') }
      case '/projects':
        return { projects: this.#objects.list('project') }
      case '/tasks':
        return { tasks: this.#objects.list('task') }
      case '/builds':
        return { builds: this.#objects.list('build') }
      case '/keys':
        return { keys: [] }
      case '/webhooks':
        return { webhooks: [] }
      case '/_berth/accounts':
        return { accounts: this.#objects.list('account') }
      case '/_berth/faults':
        return { faults: [] }
      case '/_berth/requests':
        return { requests }
      case '/_berth/events':
        return { events }
      case '/_berth/deliveries':
        return { deliveries }
      default: {
        const [, id] = /^\/_berth\/requests\/(.+)$/.exec(path) ?? []
        return (requests as WholeRequest[]).find((request) => request.id === id)
      }
    }
  }
}

/** Returns an event stream that ends. */
const eventsOf = (events: readonly unknown[]): Response =>
  new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''), {
    headers: { 'content-type': 'text/event-stream' },
  })
