import type { FormShape } from '../../http/multipart.ts'
import { EVENT_STREAM_TYPE } from '../../http/sse.ts'
import { ErrorBody } from '../model.ts'
import {
  ACCOUNT_LEVEL,
  BYTE_STREAMS,
  type ByteBody,
  type ErrorStatus,
  EVENT_SHAPE,
  EVENT_STREAM,
  FAILURES,
  FORM,
  GIVES,
  RESUMABLE,
  SECRET,
  TAKES,
} from '../operation.ts'
import { USE } from '../schema.ts'
import type { DocumentFacts } from './facts.ts'
import type {
  Header,
  MediaType,
  OperationObject,
  Parameter,
  Reference,
  ResponseObject,
  Schema,
} from './model.ts'
import type { SharedSchemas } from './schemas.ts'

/** Default descriptions of successes. */
const SUCCESSES: Record<string, string> = {
  101: 'The connection is a WebSocket from now on.',
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted; it goes on in the background.',
  206: 'The part that was asked for.',
}

/** An operation as the generator returns it. */
export type Generated = Omit<OperationObject, 'requestBody' | 'responses'> & {
  responses?: OperationObject['responses']
  requestBody?: OperationObject['requestBody'] & { description?: string }
  [EVENT_STREAM]?: string
  [EVENT_SHAPE]?: Schema
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
    [EVENT_SHAPE]: event = { type: 'string' },
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
        id: operation.operationId,
        ...(status === '200' && stream !== undefined
          ? { stream: { description: stream, event, byteTypes: byteStreams } }
          : {}),
        secret,
        isRepeatable: added.parameters.includes('IdempotencyKey'),
        gives: /^2/.test(status) ? gives : undefined,
      }),
    ]),
  )
  for (const status of [...failures, ...added.failures]) {
    responses[status] ??= failure(facts.failures[status], schemas)
  }
  responses.default = failure('Any other failure.', schemas)

  const all = [
    ...parameters.map((parameter) => completeParameter(parameter, path, schemas)),
    ...(isResumable ? [LAST_EVENT_ID] : []),
    ...added.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
  const isSocket = '101' in responses && !Object.keys(responses).some((status) => status.startsWith('2'))
  return {
    ...operation,
    ...(isSocket ? { 'x-websocket': true } : {}),
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

/** Returns the schema of bytes, in the words of OpenAPI 3.1 and in those of generators of clients. */
const bytes = (type: string): Schema => ({ type: 'string', format: 'binary', contentMediaType: type })

/** Returns the content of a body that is bytes. */
const bytesOf = (type: string): Record<string, MediaType> => ({ [type]: { schema: bytes(type) } })

/** Moves the description from a query parameter's shape to the parameter, where viewers show it. */
function completeParameter(
  parameter: Parameter | Reference,
  path: string,
  schemas: SharedSchemas,
): Parameter | Reference {
  if ('$ref' in parameter) return parameter
  const { description, ...shared } = schemas.share(parameter.schema)
  const schema = isFlag(shared) ? { type: 'boolean' } : shared
  const declared = typeof description === 'string' ? description : undefined
  const meaning = declared ?? (parameter.in === 'path' ? describePart(parameter.name, path) : undefined)
  return { ...parameter, ...(meaning ? { description: meaning } : {}), schema }
}

/** Reports whether a schema is that of a yes or no in a query, which is sent as text. */
const isFlag = ({ enum: values }: Schema): boolean => Array.isArray(values) && values.join() === 'true,false'

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

/** Reports whether a schema is one of a body. */
const isShape = (schema: Schema | null | undefined): boolean =>
  typeof schema === 'object' && schema !== null && schema.type !== 'void'

/**
 * Returns the body of a response.
 *
 * @throws Error if its shape has no name, since clients would get one that no person has chosen
 */
function named(content: Record<string, MediaType>, id: string): Record<string, MediaType> {
  for (const { schema } of Object.values(content))
    if (!('$id' in schema)) throw new Error(`The shape of a response of ${id} has no $id: give it one.`)
  return content
}

/** The streams that a response may be in place of JSON. */
interface StreamedResponse {
  /** Describes its event stream. */
  readonly description: string
  /** The shape of an event. */
  readonly event: Schema
  /** Media types of its streams of bytes. */
  readonly byteTypes: readonly string[]
}

/** Returns the content of streams: an event stream has the shape of each of its events. */
const streamedContent = (
  { event, byteTypes }: StreamedResponse,
  schemas: SharedSchemas,
): Record<string, MediaType> =>
  Object.assign({ [EVENT_STREAM_TYPE]: { schema: schemas.share(event) } }, ...byteTypes.map(bytesOf))

function completeResponse(
  status: string,
  response: ResponseObject,
  schemas: SharedSchemas,
  {
    id,
    stream,
    secret,
    isRepeatable,
    gives,
  }: {
    id: string
    stream?: StreamedResponse
    secret: true | undefined
    isRepeatable: boolean
    gives: string | undefined
  },
): ResponseObject {
  // A response without a body has the shape "void", of which the generator makes content without a schema.
  const bodies = Object.entries(response.content ?? {}).filter(([, { schema }]) => isShape(schema))
  const given = bodies[0]?.[1].schema
  const content =
    gives !== undefined
      ? { content: contentOfStream(gives, id, given, schemas) }
      : bodies.length > 0
        ? {
            content: {
              ...shareContent(named(Object.fromEntries(bodies), id), schemas),
              ...(stream ? streamedContent(stream, schemas) : {}),
            },
          }
        : {}
  const meaning = meaningOf(status, given)
  return {
    description: stream ? `${meaning} ${stream.description}` : meaning,
    headers: {
      ...HEADERS_OF_ALL,
      ...(isRepeatable ? referencesTo('idempotent-replayed') : {}),
      ...(secret ? { 'Cache-Control': NO_STORE } : {}),
    },
    ...content,
  }
}

/** Returns the content of a stream: the shape of each of its items if there is one, else bytes. */
function contentOfStream(
  type: string,
  id: string,
  item: Schema | undefined,
  schemas: SharedSchemas,
): Record<string, MediaType> {
  return item === undefined ? bytesOf(type) : shareContent(named({ [type]: { schema: item } }, id), schemas)
}

/** The headers of responses, by name. */
export const HEADERS: Readonly<Record<string, Header>> = {
  'x-request-id': {
    description: 'Id of the request, under which the journal and the log have it.',
    schema: { type: 'string' },
  },
  'x-berth-version': { description: 'The version of berth that responds.', schema: { type: 'string' } },
  'idempotent-replayed': {
    description:
      'There, as `true`, if an earlier request with the same `Idempotency-Key` got this response first.',
    schema: { type: 'string' },
  },
}

const referencesTo = (...names: readonly string[]): Record<string, Reference> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const HEADERS_OF_ALL = referencesTo('x-request-id', 'x-berth-version')

/** The header of responses that carry a credential. */
const NO_STORE = {
  description: 'The response carries a credential: caches keep nothing of it.',
  schema: { type: 'string', const: 'no-store' },
}

function meaningOf(status: string, schema: Schema | undefined): string {
  const declared = schema?.[USE] ?? schema?.description
  return typeof declared === 'string' ? declared : (SUCCESSES[status] ?? 'Done.')
}

const failure = (description: string, schemas: SharedSchemas): ResponseObject => ({
  description,
  headers: HEADERS_OF_ALL,
  content: { 'application/json': { schema: schemas.share(JSON.parse(JSON.stringify(ErrorBody))) } },
})

function contentOf(
  { content }: NonNullable<Generated['requestBody']>,
  form: FormShape | undefined,
  schemas: SharedSchemas,
): Record<string, MediaType> {
  const shared = shareContent(content, schemas)
  const object = content['application/json']?.schema
  if (form === undefined || object === undefined) return shared
  const { properties = {}, $id: name, examples: _, ...rest } = object
  const withFile = {
    ...rest,
    $id: `${name}Form`,
    properties: { ...(properties as object), [form.file]: bytes(BYTES) },
  }
  const encoding = Object.fromEntries(form.json.map((field) => [field, { contentType: 'application/json' }]))
  return { ...shared, 'multipart/form-data': { schema: schemas.share(withFile), encoding } }
}

const BYTES = 'application/octet-stream'

const shareContent = (content: Record<string, { schema: Schema }>, schemas: SharedSchemas) =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => [type, { schema: schemas.share(schema) }]),
  )
