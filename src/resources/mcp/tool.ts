import type { Tool } from '@modelcontextprotocol/server'
import type { OpenApiDocument, OperationObject, Parameter, Schema } from '../../contract/openapi/model.ts'
import type { IndexedOperation } from '../../contract/operation-index.ts'
import { annotationsOf } from './annotations.ts'
import { FOLLOW_SCHEMA, follows } from './follow.ts'
import { noteOn } from './notes.ts'
import { standingAlone } from './schema.ts'

/** An operation of the API as a tool: what hosts are told of it, and how a call becomes a request. */
export interface OperationTool {
  /** What `tools/list` says of it. */
  readonly tool: Tool
  /** The operation id, such as `servers.create`. */
  readonly id: string
  readonly method: string
  /** With its parameters in braces. */
  readonly path: string
  /** Names of the arguments that stand in the path. */
  readonly pathNames: readonly string[]
  /** Names of those that go into the query; all others are fields of the body. */
  readonly queryNames: ReadonlySet<string>
  readonly takesBody: boolean
  /** Only a credential that reaches the whole account may call it. */
  readonly accountLevel: boolean
}

/** The name under which hosts know an operation: `servers.create` → `servers_create`. */
export const toolName = (operationId: string): string => operationId.replaceAll('.', '_')

/**
 * The tools of an API, one for each of its operations, in the order of its documents. Takes milliseconds: callers
 * keep the result.
 *
 * @throws Error where two arguments of an operation have one name
 */
export function toolsOf(
  operations: readonly IndexedOperation[],
  { paths, components }: OpenApiDocument,
): OperationTool[] {
  return operations.map((operation) => {
    const described = paths[operation.path]?.[operation.method.toLowerCase()]
    if (described === undefined) throw new Error(`The document lacks ${operation.id}.`)
    return toolOf(operation, described, components.schemas)
  })
}

function toolOf(
  { id, method, path, accountLevel }: IndexedOperation,
  described: OperationObject,
  shapes: Readonly<Record<string, Schema>>,
): OperationTool {
  const parameters = (described.parameters ?? []).filter((one): one is Parameter => 'in' in one)
  const inPath = parameters.filter((one) => one.in === 'path')
  const inQuery = parameters.filter((one) => one.in === 'query')
  const { requestBody } = described
  const shape = requestBody?.content['application/json']?.schema
  const body = shape ? standingAlone(shape, shapes) : null
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
      description: `${described.summary}. ${noteOn(id) ?? described.description ?? ''}`.trimEnd(),
      inputSchema: inputOf(id, [...inPath, ...inQuery], body, requestBody?.required ?? false),
      outputSchema: outputOf(described, shapes),
      annotations: annotationsOf(id, method),
    },
  }
}

/** All that a caller sends as one flat object. */
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
  if (follows(id)) add('follow', FOLLOW_SCHEMA)
  const required = [
    ...parameters.filter((one) => one.required).map(({ name }) => name),
    ...(bodyRequired ? ((body?.required as string[] | undefined) ?? []) : []),
  ]
  // Bodies that take further fields say so by silence; where nothing takes them, that is said.
  const closed = body === null || body.additionalProperties === false
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(closed ? { additionalProperties: false } : {}),
  } as Tool['inputSchema']
}

/** The shape of what a success answers with; clients of 2025 expect an object at its root. */
function outputOf(
  described: OperationObject,
  shapes: Readonly<Record<string, Schema>>,
): Tool['outputSchema'] {
  const successes = Object.entries(described.responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content }]) => {
      const json = content?.['application/json']
      return json ? [standingAlone(json.schema, shapes)] : []
    })
  const [only] = successes
  const shape = successes.length === 1 && only ? only : { anyOf: successes }
  return { type: 'object', ...shape } as Tool['outputSchema']
}
