import { type CallersApi, pathOf } from './callers-api.ts'

/** Largest number of values in one response (MCP, "Completion"). */
const MAX_VALUES = 100

/** The source of an argument's values: the path of an operation, and the field of its response. */
interface ValueSource {
  path: string
  field: string
}

/** Keyed by the name of the argument, in resource templates and prompts alike. */
const SOURCES: Readonly<Record<string, ValueSource>> = {
  serverId: { path: '/servers', field: 'servers' },
  projectId: { path: '/projects', field: 'projects' },
  /**
   * An argument of the prompt that gives an app a URL. It takes a template or the URL of a repository; only templates
   * can be completed.
   */
  source: { path: '/templates', field: 'templates' },
  taskId: { path: '/servers/{serverId}/tasks', field: 'tasks' },
  buildId: { path: '/servers/{serverId}/builds', field: 'builds' },
  path: { path: '/servers/{serverId}/files', field: 'files' },
}

/** The completions of an argument. */
export type Completion = { completion: { values: string[]; total: number; hasMore: boolean } }

/**
 * Completes an argument.
 *
 * @param known the arguments that are already filled in
 */
export async function complete(
  argument: { name: string; value: string },
  known: Readonly<Record<string, string>>,
  api: CallersApi,
  signal: AbortSignal,
): Promise<Completion> {
  const source = Object.hasOwn(SOURCES, argument.name) ? SOURCES[argument.name] : undefined
  const needed = [...(source?.path.matchAll(/\{([^}]+)\}/g) ?? [])].map(([, name]) => name ?? '')
  if (source === undefined || needed.some((name) => !known[name])) return completionOf([])
  const { status, body } = await api.fetchJson({ method: 'GET', path: pathOf(source.path, known), signal })
  if (status !== 200) return completionOf([])
  const all = (body[source.field] as (string | { id: string })[]).map((one) =>
    typeof one === 'string' ? one : one.id,
  )
  return completionOf(all.filter((value) => value.startsWith(argument.value)))
}

function completionOf(fitting: readonly string[]): Completion {
  const values = fitting.slice(0, MAX_VALUES)
  return { completion: { values, total: fitting.length, hasMore: values.length < fitting.length } }
}
