import type { CallToolResult } from '@modelcontextprotocol/server'
import { BerthError, badRequest } from '../../errors.ts'
import type { Leaves, LeftResult } from '../exec/leave.ts'
import { type ApiRequest, type ApiResponse, type CallersApi, fillPath, readResponse } from './callers-api.ts'
import { eventsOf, failureOfEvent, isEventStream } from './events.ts'
import { followRule, projectWaits } from './follow.ts'
import type { Progress } from './progress.ts'
import type { Publications } from './publications.ts'
import { isWholeFor, type ResultForm, resultOf } from './result.ts'
import type { OperationTool } from './tool.ts'

/** Milliseconds after which a call responds in any case: clients give a call up after 60 s. */
export const PATIENCE_MS = 45_000

/** A tool call of an MCP client. */
export interface ToolCall {
  readonly operation: OperationTool
  readonly args: Readonly<Record<string, unknown>>
  readonly api: CallersApi
  /** Fires when the client no longer waits for the result. */
  readonly signal: AbortSignal
  /** Receives progress; null if the client did not ask for it. */
  readonly progress: Progress | null
  /** The publications that go on after their calls. */
  readonly publications: Publications
  readonly leaves: Leaves
  readonly form: ResultForm
}

/**
 * Calls an operation with one request to the API and returns its response as the result. A failure is a result too,
 * because a model can react to it (MCP, "Tools", error handling).
 */
export async function callTool(call: ToolCall): Promise<CallToolResult> {
  const { operation, form } = call
  try {
    const sorted = sortArguments(operation, call.args, call.signal)
    const result = resultOf(await responseTo(call, sorted), operation.id, sorted.args, form)
    const text = JSON.stringify(result)
    const shown = form.hide(text)
    return shown === text ? result : JSON.parse(shown)
  } catch (error) {
    if (error instanceof BerthError)
      return resultOf({ status: error.status, body: { ...error.toBody() } }, operation.id, call.args, form)
    throw error
  }
}

async function responseTo(call: ToolCall, { follow, request, args }: SortedCall): Promise<ApiResponse> {
  const { operation, api, progress, publications } = call
  const serverId = String(args.serverId)
  switch (operation.id) {
    case 'exec.run':
      return execute(call, request)
    case 'deployments.create':
      return publications.publish(serverId, request, api)
    case 'deployments.logs':
      return follow ? publications.followLog(serverId, request, api) : api.fetchJson(request)
    case 'projects.get':
    case 'projects.init': {
      const first = await api.fetchJson(request)
      return follow && first.status < 400 ? followProject(request, first, api) : first
    }
  }
  if (!follow) return api.fetchJson(request)
  return (await followToEnd(operation.id, request, api, progress)) ?? api.fetchJson(request)
}

/** Runs a command. Responds when it has ended, or after a while with its output so far. */
async function execute({ api, progress, form, leaves }: ToolCall, request: ApiRequest): Promise<ApiResponse> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const leave = {
    afterMs: PATIENCE_MS,
    fits: (result: LeftResult) => isWholeFor({ ...result }, form),
    onOutput: progress
      ? (stream: 'stdout' | 'stderr', data: Uint8Array) =>
          progress.add(decoders[stream].decode(data, { stream: true }))
      : undefined,
  }
  const { status, body } = await api.fetchJson({ ...request, prepare: (made) => leaves.set(made, leave) })
  if (status >= 400 || !('stdoutBytes' in body)) return { status, body }
  // `execution` repeats what the other fields say, and so do the counts where everything is there.
  const { execution: _, stdoutBytes, stderrBytes, ...rest } = body
  const isAll = body.truncated !== true && body.status !== 'running'
  return { status, body: isAll ? rest : { ...rest, stdoutBytes, stderrBytes } }
}

/** Returns a signal that aborts with another one, or after the patience of clients. */
function impatient(signal: AbortSignal): { signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const timer = setTimeout(abort, PATIENCE_MS)
  signal.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    },
  }
}

/**
 * Follows the event stream of an operation until it ends or waits for the caller, or the client may wait no longer.
 *
 * @returns the response if the API refused or the stream failed, else null
 */
async function followToEnd(
  id: string,
  request: ApiRequest,
  api: CallersApi,
  progress: Progress | null,
): Promise<ApiResponse | null> {
  const how = followRule(id)
  using patience = impatient(request.signal)
  const { signal } = patience
  const response = await api.send({ ...request, signal, stream: true })
  if (!isEventStream(response)) return readResponse(response)
  try {
    for await (const event of eventsOf(response, signal)) {
      if (event.event === 'error') return failureOfEvent(event)
      progress?.add(how?.textOf(event) ?? '')
      const { state } = how ?? {}
      if (!state || !how?.mayWait?.(event)) continue
      const { method, path } = request
      const { body } = await api.fetchJson({ method, signal, path: state.path(path) })
      if (state.waits(body)) break
    }
  } catch (error) {
    if (!signal.aborted || request.signal.aborted) throw error
  }
  return null
}

/** Waits until the bring-up of a project goes no further by itself, or the client may wait no longer. */
async function followProject(
  { path, signal: whole }: ApiRequest,
  first: ApiResponse,
  api: CallersApi,
): Promise<ApiResponse> {
  if (!projectWaits(first.body)) return first
  using patience = impatient(whole)
  const { signal } = patience
  const project = { method: 'GET', path: path.replace(/\/init$/, ''), signal: whole }
  const changes = await api.send({ method: 'GET', path: '/changes', stream: true, signal })
  if (!isEventStream(changes)) return readResponse(changes)
  const id = String(first.body.id)
  let latest = first
  try {
    for await (const { event, data } of eventsOf(changes, signal)) {
      if (event === 'error') return failureOfEvent({ event, data })
      // What changed before the stream began, or while it was behind, is looked up.
      const isLost = data.type === 'ready' || data.type === 'gap'
      if (!isLost && !(data.type === 'project' && data.id === id)) continue
      latest = await api.fetchJson(project)
      if (latest.status >= 400 || !projectWaits(latest.body)) break
    }
  } catch (error) {
    if (!signal.aborted || whole.aborted) throw error
  }
  if (latest.status >= 400) return latest
  const { init_run_id: run } = first.body
  return {
    status: latest.status,
    body: { ...(run === undefined ? {} : { init_run_id: run }), ...latest.body },
  }
}

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
  const filled = fillPath(path, args)
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
