import { GUIDE_PATH } from '../../http/docs/guide/routes.ts'
import { Examples } from '../openapi/examples.ts'
import type { MediaType, OpenApiDocument, OperationObject, Parameter, Reference } from '../openapi/model.ts'
import { STREAMED } from '../openapi/operations.ts'
import { codesOf, type DescribedOperation, type OperationAccess } from '../operation.ts'
import type { TagFacts } from '../tags.ts'
import { type Field, type Shape, Shapes } from './shape.ts'

/** An API as a person reads it. */
export interface ApiReference {
  readonly description: string
  readonly groups: readonly ReferenceGroup[]
  /** The requests to subscribers, by event. */
  readonly events: readonly ReferenceEvent[]
  /** The failures of all operations, by status. */
  readonly failures: readonly ReferenceFailure[]
}

/** A group of operations about one thing. */
export interface ReferenceGroup {
  readonly name: string
  /** Its fragment in the page's URL. */
  readonly anchor: string
  readonly description: string
  /** Path of the page of the guide that shows how its operations are used. */
  readonly guide: string
  readonly operations: readonly ReferenceOperation[]
}

/** An operation. Its id is its fragment in the page's URL. */
export interface ReferenceOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly access: OperationAccess
  readonly summary: string
  readonly description: string
  /** The command of berth that does the same. */
  readonly command: string | undefined
  readonly parameters: readonly ReferenceParameter[]
  readonly request: { readonly required: boolean; readonly shape: Shape; readonly types: string } | undefined
  /** An example of its JSON body. */
  readonly body: unknown
  /** The media type of its body of bytes. */
  readonly takes: string | undefined
  /** Examples of the required parameters of its query. */
  readonly query: Readonly<Record<string, unknown>>
  readonly successes: readonly ReferenceResponse[]
  readonly failures: readonly ReferenceFailure[]
  /** Description of its event stream, if it has one. */
  readonly stream: string | undefined
  /** Whether its response goes on for as long as things happen. */
  readonly isEndless: boolean
  /** Whether it is a WebSocket. */
  readonly isSocket: boolean
}

/** A parameter of the path, of the query or a header. */
export interface ReferenceParameter extends Field {
  readonly in: Parameter['in']
}

/** A response of a success. */
export interface ReferenceResponse {
  readonly status: string
  readonly description: string
  /** The media type of bytes. */
  readonly gives: string | undefined
  readonly shape: Shape | undefined
  readonly example: unknown
}

/** A failure with its codes. */
export interface ReferenceFailure {
  readonly status: string
  readonly description: string
  readonly codes: readonly string[]
}

/** An event that is sent to subscribers. */
export interface ReferenceEvent {
  readonly name: string
  readonly anchor: string
  readonly shape: Shape
}

const JSON_TYPE = 'application/json'

/** Returns the fragment of a group or of an event. */
const anchorOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9.]+/g, '-')

/**
 * Builds the reference of an API.
 *
 * @param described the operations of the document, from the declarations of its routes
 * @param tags its groups
 * @param commands the commands of berth that do the same, by the id of the operation
 */
export function referenceOf(
  document: OpenApiDocument,
  described: readonly DescribedOperation[],
  tags: Readonly<Record<string, TagFacts>>,
  commands: ReadonlyMap<string, string>,
): ApiReference {
  const shapes = new Shapes(document.components.schemas)
  const examples = new Examples(document.components.schemas)
  const facts = new Map(described.map((one) => [`${one.method} ${one.path}`, one]))
  const parameterOf = (given: Parameter | Reference): Parameter[] => {
    if (!('$ref' in given)) return [given]
    const shared = document.components.parameters[given.$ref.split('/').at(-1) ?? '']
    return shared ? [shared] : []
  }
  const operationOf = (method: string, path: string, operation: OperationObject): ReferenceOperation => {
    const { summary, description = '', requestBody, responses } = operation
    // A document may leave out what the ids of all its operations have.
    const declared = facts.get(`${method.toUpperCase()} ${path}`)
    const { id } = declared ?? { id: operation.operationId }
    const parameters = (operation.parameters ?? []).flatMap(parameterOf)
    const required = parameters.filter((one) => one.in === 'query' && one.required)
    const query = Object.fromEntries(
      required.map(({ name, schema }) => [
        name,
        Object.values(
          examples.of({ type: 'object', properties: { [name]: schema }, required: [name] }, id) as object,
        )[0],
      ]),
    )
    const content: Record<string, MediaType> = requestBody?.content ?? {}
    const [taken] = Object.keys(content).filter(
      (type) => type !== JSON_TYPE && !type.startsWith('multipart/'),
    )
    const [success = '', ...moreSuccess] = (responses['200']?.description ?? '').split(STREAMED)
    const stream = moreSuccess.join(STREAMED).trim()
    return {
      id,
      method: method.toUpperCase(),
      path,
      access: accessOf(id, operation, declared),
      summary,
      description,
      command: commands.get(id),
      parameters: parameters.map(({ name, in: place, required = false, description = '', schema }) => ({
        name,
        in: place,
        required,
        description,
        shape: shapes.of(schema),
      })),
      request: requestBody && {
        required: requestBody.required,
        shape: shapes.of(content[JSON_TYPE]?.schema ?? Object.values(content)[0]?.schema ?? {}),
        types: Object.keys(content).join(' or '),
      },
      body: content[JSON_TYPE]?.example,
      takes: taken,
      query,
      successes: Object.entries(responses)
        .filter(([status]) => status < '300')
        .map(([status, { description, content = {} }]) => ({
          status,
          description: status === '200' ? success.trim() : description,
          gives: content[JSON_TYPE] ? undefined : Object.keys(content)[0],
          shape: content[JSON_TYPE] && shapes.of(content[JSON_TYPE].schema),
          example: content[JSON_TYPE]?.example,
        })),
      failures: Object.entries(responses)
        .filter(([status]) => /^[45]/.test(status))
        .map(([status, { description }]) => ({ status, description, codes: codesOf(Number(status)) })),
      stream: stream === '' ? undefined : stream,
      isEndless: declared?.streamsBytes === true,
      isSocket: '101' in responses,
    }
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      tag: operation.tags[0] ?? '',
      operation: operationOf(method, path, operation),
    })),
  )
  const order = new Map(described.map(({ id }, index) => [id, index]))
  return {
    description: document.info.description,
    groups: document.tags
      .filter(({ name }) => operations.some(({ tag }) => tag === name))
      .map(({ name, description }) => ({
        name,
        anchor: anchorOf(name),
        description,
        guide: `${GUIDE_PATH}/${tags[name]?.guide ?? ''}`,
        operations: operations
          .filter(({ tag }) => tag === name)
          .map(({ operation }) => operation)
          .sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0)),
      })),
    failures: failuresOf(operations.flatMap(({ operation }) => operation.failures)),
    events: Object.entries(document.webhooks ?? {}).map(([name, methods]) => ({
      name,
      anchor: `event-${anchorOf(name)}`,
      shape: shapes.of(Object.values(methods)[0]?.requestBody?.content[JSON_TYPE]?.schema ?? {}),
    })),
  }
}

/** Returns each failure once. The meaning of a status is the same in all operations. */
const failuresOf = (all: readonly ReferenceFailure[]): ReferenceFailure[] =>
  [...new Map(all.map((one) => [one.status, one])).values()].sort((a, b) => (a.status < b.status ? -1 : 1))

function accessOf(id: string, { security }: OperationObject, facts?: DescribedOperation): OperationAccess {
  if (security?.length === 0) return 'public'
  if (id.startsWith('control.')) return 'admin'
  return facts?.accountLevel ? 'account' : 'resource'
}
