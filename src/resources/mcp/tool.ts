import type { Tool, ToolAnnotations } from '@modelcontextprotocol/server'
import type { OpenApiDocument, OperationObject, Parameter, Schema } from '../../contract/openapi/model.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import { FOLLOW_SCHEMA, isFollowable } from './follow.ts'
import { argumentNote, noteFor } from './notes.ts'

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
  const inQuery = parameters.filter((one) => one.in === 'query' && one.name !== WAIT)
  const { requestBody } = described
  const early = RESPONDS_EARLY[id]
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
      description: noteFor(id) ?? described.description ?? described.summary,
      inputSchema: inputOf(id, shapes, [...inPath, ...inQuery], body, requestBody?.required ?? false),
      outputSchema: early ? openOutput(described, shapes, early) : outputOf(described, shapes),
      annotations: annotationsOf(id, method),
    },
  }
}

/** Describes all arguments as one flat object. */
function inputOf(
  id: string,
  shapes: Readonly<Record<string, Schema>>,
  parameters: readonly Parameter[],
  body: Schema | null,
  bodyRequired: boolean,
): Tool['inputSchema'] {
  const properties: Record<string, Schema> = {}
  const add = (name: string, schema: Schema): void => {
    if (Object.hasOwn(properties, name)) throw new Error(`${id} has two arguments "${name}".`)
    properties[name] = schema
  }
  for (const { name, schema, description, in: place } of parameters) {
    // The name of an id says what it is the id of.
    const whole = inlineReferences(schema, shapes)
    add(name, description && place !== 'path' ? { ...whole, description } : whole)
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
  const isForPrograms = FOR_PROGRAMS.has(id)
  return {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [
        name,
        SAID_ELSEWHERE[`${id}.${name}`] ?? argumentOf(name, schema, isForPrograms),
      ]),
    ),
    ...(required.length > 0 ? { required } : {}),
    ...(closed ? { additionalProperties: false } : {}),
  } as Tool['inputSchema']
}

/** Models wait by `follow`. */
const WAIT = 'wait_ms'

/** Operations for programs that keep copies of files. No model calls them, so nothing is described to it. */
const FOR_PROGRAMS: ReadonlySet<string> = new Set(['deployments.push', 'projects.push'])

/** Arguments that another tool describes at length. */
const SAID_ELSEWHERE: Readonly<Record<string, Schema>> = {
  'projects.detect.template': { type: 'string' },
  'projects.detect.source': { type: 'object', description: 'As for projects_create.' },
}

/** Bounds from which on a model does not meet them. The API checks all. */
const WIDE = 1_000
const UPPER_BOUNDS: ReadonlySet<string> = new Set(['maximum', 'maxLength', 'maxItems'])
const LOWER_BOUNDS: ReadonlySet<string> = new Set(['minimum', 'minLength', 'minItems'])

/** Characters from which on the description of a field of an argument is left out. */
const BRIEF = 90

/** Keywords that descriptions say in words, or that a model cannot use. */
const UNTOLD: ReadonlySet<string> = new Set(['pattern', 'propertyNames', 'title', 'writeOnly'])

/** Describes an argument. */
function argumentOf(name: string, schema: Schema, isBare: boolean): Schema {
  if (isBare) return { type: schema.type }
  const note = argumentNote(name)
  return { ...(lean(schema) as Schema), ...(note === undefined ? {} : { description: note }) }
}

/** Returns a schema of an argument without what tells a model nothing: lists of tools are part of every conversation. */
function lean(schema: unknown, isNested = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => lean(one, isNested))
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(([keyword, value]) => {
    // The field of an object may have the name of a keyword.
    if (typeof value === 'object' && keyword !== 'propertyNames') return true
    if (UNTOLD.has(keyword)) return false
    if (keyword === 'description') return !isNested || String(value).length < BRIEF
    if (LOWER_BOUNDS.has(keyword)) return Number(value) > 1
    return !UPPER_BOUNDS.has(keyword) || Number(value) < WIDE
  })
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, lean(value, true)]))
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

/** Operations whose tools may respond before the operation does: the fields that each form of their results has. */
const RESPONDS_EARLY: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'exec.run': [['stdout', 'stderr', 'timedOut', 'truncated'], ['execution']],
  'deployments.create': [['status']],
}

/** Describes the fields of all successes. @param alternatives the fields that one of several forms has */
function openOutput(
  described: OperationObject,
  shapes: Readonly<Record<string, Schema>>,
  alternatives: readonly (readonly string[])[],
): Tool['outputSchema'] {
  const { anyOf = [], properties } = outputOf(described, shapes) as Record<string, unknown> & {
    anyOf?: Schema[]
  }
  const all = [{ properties }, ...anyOf].map((shape) => (shape.properties ?? {}) as Record<string, Schema>)
  return {
    type: 'object',
    properties: { ...Object.assign({}, ...all), ...EARLY_FIELDS },
    anyOf: alternatives.map((required) => ({
      properties: Object.fromEntries(required.map((name) => [name, {}])),
      required: [...required],
    })),
  } as Tool['outputSchema']
}

/** Fields of a result whose operation goes on. */
const EARLY_FIELDS: Readonly<Record<string, Schema>> = {
  status: { type: 'string', description: '`running` or `starting` while it goes on.' },
  executionId: { type: 'string', description: 'Of the execution that the command goes on as.' },
  phase: { type: 'string', description: 'What a publication has come to.' },
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
  // A discriminator refers to names that are not there.
  const { $ref: reference, discriminator: _, ...rest } = value as Schema
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
  'projects.detect': { openWorldHint: true, idempotentHint: true },
  'projects.init': RUNS_CODE,
  'projects.push': RUNS_CODE,
  'projects.restart': RUNS_CODE,
  'projects.cleanup': { destructiveHint: true },
  'webhooks.create': { openWorldHint: true },
  'webhooks.enable': { idempotentHint: true },
}

/**
 * Returns the hints that a host may show before a call, without those that are false where they are left out. GET changes
 * nothing. PUT, PATCH and DELETE replace or remove, and repeating them has no further effect (RFC 9110, 9.2). POST adds.
 * Only the listed exceptions reach beyond berth.
 */
function annotationsOf(operationId: string, method: string): ToolAnnotations {
  const adds = method === 'POST'
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint }: ToolAnnotations = {
    readOnlyHint: method === 'GET',
    destructiveHint: !adds,
    idempotentHint: !adds,
    openWorldHint: false,
    ...EXCEPTIONS[operationId],
  }
  return {
    // Of a tool that only reads, the other hints mean little.
    ...(readOnlyHint ? { readOnlyHint } : { destructiveHint, openWorldHint }),
    ...(idempotentHint ? { idempotentHint } : {}),
  } as ToolAnnotations
}
