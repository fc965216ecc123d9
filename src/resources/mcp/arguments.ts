import { badRequest } from '../../errors.ts'
import { type ApiRequest, pathOf } from './callers-api.ts'
import { followRule } from './follow.ts'
import type { OperationTool } from './tool.ts'

/** The arguments of a call, sorted into a request. */
export interface SortedCall {
  /** Whether the caller wants the end of what the operation has begun or shows. */
  readonly follow: boolean
  readonly request: ApiRequest
  /** By the names that the tool lists. */
  readonly args: Readonly<Record<string, unknown>>
}

/** Returns a name without what `serverId` and `server_id` differ in. */
const spellingOf = (name: string): string => name.replaceAll('_', '').toLowerCase()

/**
 * Sorts the arguments of a call into path, query and body. A name in the other spelling is taken for the listed one.
 *
 * @throws BerthError 400
 */
export function sortArguments(
  operation: OperationTool,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): SortedCall {
  const { id, method, path, pathNames, queryNames, takesBody } = operation
  const { args, unknown } = namedArguments(operation, given)
  checkPath(pathNames, args, unknown)
  const query: Record<string, string> = {}
  const fields: Record<string, unknown> = {}
  let follow = false
  for (const [name, value] of Object.entries(args)) {
    if (pathNames.includes(name)) continue
    if (name === 'follow' && followRule(id)) {
      if (typeof value !== 'boolean') throw badRequest('"follow": expected true or false.')
      follow = value
    } else if (queryNames.has(name)) {
      if (typeof value === 'object') throw badRequest(`"${name}": expected a single value.`)
      query[name] = String(value)
    } else if (takesBody) {
      fields[name] = value
    } else {
      throw badRequest(`There is no argument "${name}". Leave it out.`)
    }
  }
  const filled = pathOf(path, args)
  const request = { method, path: filled, query, signal, ...(takesBody ? { body: fields } : {}) }
  return { follow, request, args }
}

/**
 * Returns the arguments by the names that the tool lists, and the names that it does not list.
 *
 * @throws BerthError 400 for one that is given in both spellings, or that no object of the API can have
 */
function namedArguments(
  { tool }: OperationTool,
  given: Readonly<Record<string, unknown>>,
): { args: Record<string, unknown>; unknown: string[] } {
  const listed = Object.keys(tool.inputSchema.properties ?? {})
  const args: Record<string, unknown> = {}
  const unknown: string[] = []
  for (const [name, value] of Object.entries(given)) {
    if (name === '__proto__') throw badRequest('There is no argument "__proto__". Leave it out.')
    const meant = listed.includes(name) ? name : listed.find((one) => spellingOf(one) === spellingOf(name))
    if (meant === undefined) unknown.push(name)
    else if (meant !== name && Object.hasOwn(given, meant))
      throw badRequest(`"${name}" and "${meant}" are the same argument. Leave one out.`)
    args[meant ?? name] = value
  }
  return { args, unknown }
}

/**
 * Checks that an id is there for each place in the path.
 *
 * @throws BerthError 400, which names an unknown argument that may be meant
 */
function checkPath(
  pathNames: readonly string[],
  args: Readonly<Record<string, unknown>>,
  unknown: readonly string[],
): void {
  const missing = pathNames.find((name) => args[name] === undefined)
  if (missing === undefined || unknown.length === 0) return
  const likely = unknown.find((name) => /id$/i.test(name)) ?? unknown[0]
  throw badRequest(
    `"${missing}": expected an id, got nothing. There is no argument "${likely}": did you mean "${missing}"?`,
  )
}
