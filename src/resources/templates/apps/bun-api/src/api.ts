import { errorResponse, HttpError, methods, readJson } from './http.ts'
import { parseChanges, parseNewTask, type Task, type TaskStore } from './tasks.ts'

interface ApiOptions {
  hostname: string
  /** 0 takes any port that is free. */
  port: number
  tasks: TaskStore
}

/** Starts the API and returns the server that runs. */
export function createApi({ hostname, port, tasks }: ApiOptions) {
  const find = (id: string): Task => {
    const task = tasks.get(id)
    if (!task) throw new HttpError(404, 'not_found', `There is no task ${JSON.stringify(id)}.`)
    return task
  }

  return Bun.serve({
    hostname,
    port,
    // Bodies over this are refused before they are read.
    maxRequestBodySize: 1024 * 1024,
    routes: {
      '/': methods({
        GET: () => ({
          name: 'bun-api',
          endpoints: ['GET /health', 'GET|POST /tasks', 'GET|PATCH|DELETE /tasks/:id'],
        }),
      }),
      '/health': methods({ GET: () => ({ status: 'ok', uptime_seconds: Math.round(process.uptime()) }) }),
      '/tasks': methods({
        GET: (request) => {
          const done = new URL(request.url).searchParams.get('done')
          return { tasks: tasks.list(done === null ? undefined : done === 'true') }
        },
        POST: async (request) => {
          const task = tasks.add(parseNewTask(await readJson(request)))
          return Response.json(task, { status: 201, headers: { location: `/tasks/${task.id}` } })
        },
      }),
      '/tasks/:id': methods({
        GET: (_request, { id = '' }) => find(id),
        PATCH: async (request, { id = '' }) => {
          find(id)
          return tasks.update(id, parseChanges(await readJson(request)))
        },
        DELETE: (_request, { id = '' }) => {
          find(id)
          tasks.remove(id)
          return new Response(null, { status: 204 })
        },
      }),
    },
    fetch(request) {
      const { pathname } = new URL(request.url)
      return errorResponse(new HttpError(404, 'not_found', `There is nothing at ${pathname}.`))
    },
    error: errorResponse,
  })
}
