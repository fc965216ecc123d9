import type { Tool, ToolAnnotations } from '@modelcontextprotocol/server'
import type { OpenApiDocument, OperationObject, Parameter, Schema } from '../../contract/openapi/model.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import { FOLLOW_SCHEMA, isFollowable } from './follow.ts'
import { noteFor } from './notes.ts'

/** An operation of the API as a tool: its description for hosts, and how a call becomes a request. */
export interface OperationTool {
  /** Its entry in `tools/list`. */
  readonly tool: Tool
  /** The operation id, such as `servers.create`. */
  readonly id: string
  readonly method: string
  /** With its parameters in braces. */
  readonly path: string
  /** Names of the arguments in the path. */
  readonly pathNames: readonly string[]
  /** Names of the arguments in the query. All others are fields of the body. */
  readonly queryNames: ReadonlySet<string>
  readonly takesBody: boolean
  /** Only a credential for the whole account may call it. */
  readonly accountLevel: boolean
}

/** Returns an operation's name for MCP hosts: `servers.create` → `servers_create`. */
export const toolName = (operationId: string): string => operationId.replaceAll('.', '_')

/**
 * Makes the tools of an API, one for each operation but WebSockets and streams of bytes, in the order of its document. This takes milliseconds: keep the
 * result.
 *
 * @throws Error if two arguments of an operation have the same name
 */
export function toolsOf(
  operations: readonly DescribedOperation[],
  { paths, components }: OpenApiDocument,
): OperationTool[] {
  // These are no calls with JSON.
  const calls = operations.filter(({ successes, streamsBytes }) => !successes.includes(101) && !streamsBytes)
  return calls.map((operation) => {
    const described = paths[operation.path]?.[operation.method.toLowerCase()]
    if (described === undefined) throw new Error(`The document lacks ${operation.id}.`)
    return toolOf(operation, described, components.schemas)
  })
}

function toolOf(
  { id, method, path, accountLevel }: DescribedOperation,
  described: OperationObject,
  shapes: Readonly<Record<string, Schema>>,
): OperationTool {
  const parameters = (described.parameters ?? []).filter((one): one is Parameter => 'in' in one)
  const inPath = parameters.filter((one) => one.in === 'path')
  const inQuery = parameters.filter((one) => one.in === 'query')
  const { requestBody } = described
  const shape = requestBody?.content['application/json']?.schema
  const body = shape ? inlineReferences(shape, shapes) : null
  return {
    id,
    method,
    path,
    accountLevel,
    pathNames: inPath.map(({ name }) => name),
    queryNames: new Set(inQuery.map(({ name }) => name)),
    takesBody: body !== null,
    tool: {
      name: toolName(id),
      title: described.summary,
      description: `${described.summary}. ${noteFor(id) ?? described.description ?? ''}`.trimEnd(),
      inputSchema: inputOf(id, [...inPath, ...inQuery], body, requestBody?.required ?? false),
      outputSchema: outputOf(described, shapes),
      annotations: annotationsOf(id, method),
    },
  }
}

/** Describes all arguments as one flat object. */
function inputOf(
  id: string,
  parameters: readonly Parameter[],
  body: Schema | null,
  bodyRequired: boolean,
): Tool['inputSchema'] {
  const properties: Record<string, Schema> = {}
  const add = (name: string, schema: Schema): void => {
    if (Object.hasOwn(properties, name)) throw new Error(`${id} has two arguments "${name}".`)
    properties[name] = schema
  }
  for (const { name, schema, description } of parameters) {
    add(name, description ? { ...schema, description } : schema)
  }
  for (const [name, schema] of Object.entries((body?.properties ?? {}) as Record<string, Schema>)) {
    add(name, schema)
  }
  if (isFollowable(id)) add('follow', FOLLOW_SCHEMA)
  const required = [
    ...parameters.filter((one) => one.required).map(({ name }) => name),
    ...(bodyRequired ? ((body?.required as string[] | undefined) ?? []) : []),
  ]
  // A body schema without `additionalProperties` takes further fields.
  const closed = body === null || body.additionalProperties === false
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(closed ? { additionalProperties: false } : {}),
  } as Tool['inputSchema']
}

/** Describes the body of a success. Clients of 2025 expect an object at its root. */
function outputOf(
  described: OperationObject,
  shapes: Readonly<Record<string, Schema>>,
): Tool['outputSchema'] {
  const successes = Object.entries(described.responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content }]) => {
      const json = content?.['application/json']
      return json ? [inlineReferences(json.schema, shapes)] : []
    })
  const [only] = successes
  const shape = successes.length === 1 && only ? only : { anyOf: successes }
  return { type: 'object', ...shape } as Tool['outputSchema']
}

const REFERENCE = '#/components/schemas/'

/**
 * Replaces every reference in a schema by the schema that it names. Many hosts hand a tool's schema to a model
 * unchanged, and few resolve references (JSON Schema 2020-12).
 *
 * @throws Error if a schema contains itself
 */
function inlineReferences(schema: Schema, shapes: Readonly<Record<string, Schema>>): Schema {
  return inlined(schema, shapes, []) as Schema
}

function inlined(
  value: unknown,
  shapes: Readonly<Record<string, Schema>>,
  within: readonly string[],
): unknown {
  if (Array.isArray(value)) return value.map((one) => inlined(one, shapes, within))
  if (typeof value !== 'object' || value === null) return value
  const { $ref: reference, ...rest } = value as Schema
  if (typeof reference !== 'string') {
    return Object.fromEntries(Object.entries(rest).map(([name, one]) => [name, inlined(one, shapes, within)]))
  }
  const name = reference.slice(REFERENCE.length)
  const shape = shapes[name]
  if (shape === undefined) throw new Error(`${reference} names no shape of the document.`)
  if (within.includes(name)) throw new Error(`The shape "${name}" contains itself.`)
  return { ...(inlined(shape, shapes, [...within, name]) as Schema), ...rest }
}

/** Effects of a tool that its method does not imply. */
type Exception = Partial<
  Pick<ToolAnnotations, 'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint'>
>

/** A command, an agent or an app can do anything. */
const RUNS_CODE: Exception = { destructiveHint: true, openWorldHint: true }

/** A POST because of the size of its question. */
const READS: Exception = { readOnlyHint: true, idempotentHint: true }

/** Keyed by operation id. */
const EXCEPTIONS: Readonly<Record<string, Exception>> = {
  'servers.act': { destructiveHint: true },
  'exec.run': RUNS_CODE,
  'files.manifest': READS,
  'terminals.create': RUNS_CODE,
  'terminals.type': RUNS_CODE,
  'tasks.create': RUNS_CODE,
  'tasks.answer': RUNS_CODE,
  'tasks.cancel': { destructiveHint: true },
  'builds.create': RUNS_CODE,
  'deployments.create': RUNS_CODE,
  'deployments.push': RUNS_CODE,
  'projects.create': RUNS_CODE,
  'projects.init': RUNS_CODE,
  'projects.push': RUNS_CODE,
  'projects.restart': RUNS_CODE,
  'projects.cleanup': { destructiveHint: true },
  'webhooks.create': { openWorldHint: true },
}

/**
 * Returns the hints that a host may show before a call. GET changes nothing. PUT, PATCH and DELETE replace or remove,
 * and repeating them has no further effect (RFC 9110, 9.2). POST adds. Only the listed exceptions reach beyond berth.
 */
function annotationsOf(operationId: string, method: string): ToolAnnotations {
  if (method === 'GET') {
    return { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  }
  const adds = method === 'POST'
  return {
    readOnlyHint: false,
    destructiveHint: !adds,
    idempotentHint: !adds,
    openWorldHint: false,
    ...EXCEPTIONS[operationId],
  }
}
