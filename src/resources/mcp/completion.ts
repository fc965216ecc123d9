import { type CallersApi, pathOf } from './api.ts'

/** Values that one answer holds (MCP, "Completion"). */
const MOST_VALUES = 100

/** Where the values of an argument come from: an operation, the field of its answer, and how an entry is named. */
interface Source {
  path: string
  field: string
}

/** By the name of the argument, in resource templates and prompts alike. */
const SOURCES: Readonly<Record<string, Source>> = {
  serverId: { path: '/servers', field: 'servers' },
  projectId: { path: '/projects', field: 'projects' },
  /** Of the prompt that puts an app behind a URL: a template, or the URL of a repository, which nobody can know. */
  source: { path: '/templates', field: 'templates' },
  taskId: { path: '/servers/{serverId}/tasks', field: 'tasks' },
  buildId: { path: '/servers/{serverId}/builds', field: 'builds' },
  path: { path: '/servers/{serverId}/files', field: 'files' },
}

/** What fits what was typed of an argument so far. */
export type Completion = { completion: { values: string[]; total: number; hasMore: boolean } }

/** @param known the arguments that are filled in already */
export async function complete(
  argument: { name: string; value: string },
  known: Readonly<Record<string, string>>,
  api: CallersApi,
  signal: AbortSignal,
): Promise<Completion> {
  const source = Object.hasOwn(SOURCES, argument.name) ? SOURCES[argument.name] : undefined
  const needed = [...(source?.path.matchAll(/\{([^}]+)\}/g) ?? [])].map(([, name]) => name ?? '')
  if (source === undefined || needed.some((name) => !known[name])) return completionOf([])
  const { status, body } = await api.ask({ method: 'GET', path: pathOf(source.path, known), signal })
  if (status !== 200) return completionOf([])
  const all = (body[source.field] as (string | { id: string })[]).map((one) =>
    typeof one === 'string' ? one : one.id,
  )
  return completionOf(all.filter((value) => value.startsWith(argument.value)))
}

function completionOf(fitting: readonly string[]): Completion {
  const values = fitting.slice(0, MOST_VALUES)
  return { completion: { values, total: fitting.length, hasMore: values.length < fitting.length } }
}
