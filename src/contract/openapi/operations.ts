import type { FormShape } from '../../http/multipart.ts'
import { EVENT_STREAM_TYPE } from '../../http/sse.ts'
import {
  ACCOUNT_LEVEL,
  BYTE_STREAMS,
  type ByteBody,
  type ErrorStatus,
  EVENT_STREAM,
  errorBody,
  FAILURES,
  FORM,
  GIVES,
  RESUMABLE,
  SECRET,
  TAKES,
} from '../operation.ts'
import type { DocumentFacts } from './facts.ts'
import type { MediaType, OperationObject, Parameter, Reference, ResponseObject, Schema } from './model.ts'
import type { SharedSchemas } from './schemas.ts'

/** Default descriptions of successes. */
const SUCCESSES: Record<string, string> = {
  101: 'The connection is a WebSocket from now on.',
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted; it goes on in the background.',
}

/** An operation as the generator returns it. */
export type Generated = Omit<OperationObject, 'requestBody' | 'responses'> & {
  responses?: OperationObject['responses']
  requestBody?: OperationObject['requestBody'] & { description?: string }
  [EVENT_STREAM]?: string
  [BYTE_STREAMS]?: string[]
  [RESUMABLE]?: true
  [FORM]?: FormShape
  [TAKES]?: ByteBody
  [GIVES]?: string
  [ACCOUNT_LEVEL]?: true
  [SECRET]?: true
  [FAILURES]?: ErrorStatus[]
}

/**
 * Completes an operation with the parts that operations of an API share: descriptions of statuses, shared parameters
 * and failures, and the event stream in addition to the JSON response.
 *
 * @param bodyOptional whether the body may be missing
 */
export function completeOperation(
  method: string,
  path: string,
  generated: Generated,
  bodyOptional: boolean,
  facts: DocumentFacts,
  schemas: SharedSchemas,
): OperationObject {
  const {
    [EVENT_STREAM]: events,
    [BYTE_STREAMS]: byteStreams = [],
    [RESUMABLE]: isResumable = false,
    [FORM]: form,
    [TAKES]: takes,
    [GIVES]: gives,
    [ACCOUNT_LEVEL]: _,
    [SECRET]: secret,
    [FAILURES]: failures = [],
    parameters = [],
    requestBody,
    ...operation
  } = generated
  const added = facts.added({
    method,
    usualCredential: operation.security === undefined,
    body: requestBody !== undefined || takes !== undefined,
    streamedBody: takes !== undefined,
    input: requestBody !== undefined || parameters.some((one) => 'in' in one && one.in === 'query'),
  })
  const stream =
    events === undefined
      ? undefined
      : [STREAMED, events, isResumable ? RESUMED : '', facts.streams ?? ''].filter(Boolean).join(' ')
  const responses = Object.fromEntries(
    Object.entries(operation.responses ?? {}).map(([status, response]) => [
      status,
      completeResponse(status, response, schemas, {
        name: responseName(operation.operationId),
        ...(status === '200' && stream !== undefined
          ? { stream: { description: stream, byteTypes: byteStreams } }
          : {}),
        secret,
        gives: /^2/.test(status) ? gives : undefined,
      }),
    ]),
  )
  for (const status of [...failures, ...added.failures]) {
    responses[status] ??= failure(status, facts.failures[status], schemas)
  }

  const all = [
    ...parameters.map((parameter) => completeParameter(parameter, path, schemas)),
    ...(isResumable ? [LAST_EVENT_ID] : []),
    ...added.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
  return {
    ...operation,
    ...(all.length > 0 ? { parameters: all } : {}),
    ...(requestBody
      ? { requestBody: { required: !bodyOptional, content: contentOf(requestBody, form, schemas) } }
      : {}),
    ...(takes
      ? { requestBody: { required: false, description: takes.description, content: bytesOf(takes.type) } }
      : {}),
    responses,
  }
}

/** Returns the content of a body that is bytes. */
const bytesOf = (type: string): Record<string, MediaType> => ({
  [type]: { schema: { type: 'string', contentMediaType: type } },
})

/** Moves the description from a query parameter's shape to the parameter, where viewers show it. */
function completeParameter(
  parameter: Parameter | Reference,
  path: string,
  schemas: SharedSchemas,
): Parameter | Reference {
  if ('$ref' in parameter) return parameter
  const { description, ...schema } = schemas.share(parameter.schema)
  const declared = typeof description === 'string' ? description : undefined
  const meaning = declared ?? (parameter.in === 'path' ? describePart(parameter.name, path) : undefined)
  return { ...parameter, ...(meaning ? { description: meaning } : {}), schema }
}

/**
 * Describes a path parameter: `serverId` → "Id of the server.", `snapshots/{name}` → "Name of the snapshot.",
 * `fault/{kind}` → "Kind of the fault."
 */
function describePart(name: string, path: string): string | undefined {
  if (name.endsWith('Id')) return `Id of the ${name.slice(0, -2)}.`
  const noun = path.split('/').find((_, index, parts) => parts[index + 1] === `{${name}}`)
  return noun && `${name[0]?.toUpperCase()}${name.slice(1)} of the ${noun.replace(/s$/, '')}.`
}

/** Introduces the event stream in a response's description. */
export const STREAMED = 'With `Accept: text/event-stream` a stream of events instead:'

/** Describes how a client that reconnects continues an event stream. */
const RESUMED =
  'Each entry has an id. A client that reconnects and sends the last one as `Last-Event-ID` gets what came after it; if that entry is no longer kept, first an event `gap`, then all that is kept.'

/** The header of a client that reconnects to an event stream. */
const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The id of the last event that was received, for an event stream: it goes on after it.',
  schema: { type: 'string' },
}

/** Returns the name of a response's unnamed shape: `servers.list` → `ServersListResponse`. */
function responseName(id: string): string {
  const parts = id.split('.').filter((part) => part !== 'control')
  return `${parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('')}Response`
}

/** Reports whether a schema is one of a body. */
const isShape = (schema: Schema | null | undefined): boolean =>
  typeof schema === 'object' && schema !== null && schema.type !== 'void'

/** Names the shape of a response, and removes its description, which the response has already. */
function named(content: Record<string, MediaType>, name: string): Record<string, MediaType> {
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => {
      const { description: _, ...schema } = media.schema
      return [type, '$id' in schema ? media : { ...media, schema: { ...schema, $id: name } }]
    }),
  )
}

/** The streams that a response may be in place of JSON. */
interface StreamedResponse {
  /** Describes its event stream. */
  readonly description: string
  /** Media types of its streams of bytes. */
  readonly byteTypes: readonly string[]
}

/** Returns the content of streams: an event stream is a text, whose events the response's description has. */
const streamedContent = ({ byteTypes }: StreamedResponse): Record<string, MediaType> =>
  Object.assign({ [EVENT_STREAM_TYPE]: { schema: { type: 'string' } } }, ...byteTypes.map(bytesOf))

function completeResponse(
  status: string,
  response: ResponseObject,
  schemas: SharedSchemas,
  {
    name,
    stream,
    secret,
    gives,
  }: { name: string; stream?: StreamedResponse; secret: true | undefined; gives: string | undefined },
): ResponseObject {
  // A response without a body has the shape "void", of which the generator makes content without a schema.
  const bodies = Object.entries(response.content ?? {}).filter(([, { schema }]) => isShape(schema))
  const given = bodies[0]?.[1].schema
  const content =
    gives !== undefined
      ? { content: contentOfStream(gives, name, given, schemas) }
      : bodies.length > 0
        ? {
            content: {
              ...shareContent(named(Object.fromEntries(bodies), name), schemas),
              ...(stream ? streamedContent(stream) : {}),
            },
          }
        : {}
  const meaning = meaningOf(status, given)
  return {
    description: stream ? `${meaning} ${stream.description}` : meaning,
    ...(secret ? { headers: { 'Cache-Control': NO_STORE } } : {}),
    ...content,
  }
}

/** Returns the content of a stream: the shape of each of its items if there is one, else bytes. */
function contentOfStream(
  type: string,
  name: string,
  item: Schema | undefined,
  schemas: SharedSchemas,
): Record<string, MediaType> {
  return item === undefined ? bytesOf(type) : shareContent(named({ [type]: { schema: item } }, name), schemas)
}

/** The header of responses that carry a credential. */
const NO_STORE = {
  description: 'The response carries a credential: caches keep nothing of it.',
  schema: { type: 'string', const: 'no-store' },
}

function meaningOf(status: string, schema: Schema | undefined): string {
  return typeof schema?.description === 'string' ? schema.description : (SUCCESSES[status] ?? 'Done.')
}

const failure = (status: ErrorStatus, description: string, schemas: SharedSchemas): ResponseObject => ({
  description,
  content: {
    'application/json': { schema: schemas.share(JSON.parse(JSON.stringify(errorBody(status)))) },
  },
})

function contentOf(
  { content }: NonNullable<Generated['requestBody']>,
  form: FormShape | undefined,
  schemas: SharedSchemas,
): Record<string, MediaType> {
  const shared = shareContent(content, schemas)
  const object = shared['application/json']?.schema
  if (form === undefined || object === undefined) return shared
  const file = {
    type: 'object',
    properties: { [form.file]: { type: 'string', contentMediaType: 'application/octet-stream' } },
  }
  const encoding = Object.fromEntries(form.json.map((name) => [name, { contentType: 'application/json' }]))
  return { ...shared, 'multipart/form-data': { schema: { allOf: [object, file] }, encoding } }
}

const shareContent = (content: Record<string, { schema: Schema }>, schemas: SharedSchemas) =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => [type, { schema: schemas.share(schema) }]),
  )
