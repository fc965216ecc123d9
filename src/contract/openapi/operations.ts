import type { FormShape } from '../../http/multipart.ts'
import { ACCOUNT_LEVEL, ErrorBody, type ErrorStatus, EVENT_STREAM, FAILURES, FORM } from '../operation.ts'
import type { DocumentFacts } from './facts.ts'
import type { MediaType, OperationObject, Parameter, Reference, ResponseObject, Schema } from './model.ts'
import type { SharedSchemas } from './schemas.ts'

/** What successes mean where a shape does not say it. */
const SUCCESSES: Record<string, string> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted; it goes on in the background.',
}

/** An operation as the generator leaves it. */
export type Generated = Omit<OperationObject, 'requestBody' | 'responses'> & {
  responses?: OperationObject['responses']
  requestBody?: OperationObject['requestBody'] & { description?: string }
  [EVENT_STREAM]?: string
  [FORM]?: FormShape
  [ACCOUNT_LEVEL]?: true
  [FAILURES]?: ErrorStatus[]
}

/**
 * Completes an operation with what the operations of an API share: meanings of statuses, parameters and
 * failures that come with all of a kind, the event stream beside the JSON answer.
 *
 * @param bodyOptional the request may come without a body
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
    [FORM]: form,
    [ACCOUNT_LEVEL]: _,
    [FAILURES]: failures = [],
    parameters = [],
    requestBody,
    ...operation
  } = generated
  const added = facts.added({
    method,
    usualCredential: operation.security === undefined,
    body: requestBody !== undefined,
    input: requestBody !== undefined || parameters.some((one) => 'in' in one && one.in === 'query'),
  })
  const responses = Object.fromEntries(
    Object.entries(operation.responses ?? {}).map(([status, response]) => [
      status,
      completeResponse(status, response, schemas),
    ]),
  )
  const possible = [...failures, ...added.failures]
  if (possible.length > 0) schemas.share(structuredClone(ErrorBody) as unknown as Schema)
  for (const status of possible) responses[status] ??= failure(facts.failures[status])
  const streamed = responses[200]?.content
  if (events && streamed)
    streamed['text/event-stream'] = {
      schema: { type: 'string', description: [events, facts.streams].join(' ').trim() },
    }

  const all = [
    ...parameters.map((parameter) => completeParameter(parameter, path, schemas)),
    ...added.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
  return {
    ...operation,
    ...(all.length > 0 ? { parameters: all } : {}),
    ...(requestBody
      ? { requestBody: { required: !bodyOptional, content: contentOf(requestBody, form, schemas) } }
      : {}),
    responses,
  }
}

/** A query's description stands with its shape; documents show the parameter's own. */
function completeParameter(
  parameter: Parameter | Reference,
  path: string,
  schemas: SharedSchemas,
): Parameter | Reference {
  if ('$ref' in parameter) return parameter
  const { description, ...schema } = schemas.share(parameter.schema)
  const said = typeof description === 'string' ? description : undefined
  const meaning = said ?? (parameter.in === 'path' ? describePart(parameter.name, path) : undefined)
  return { ...parameter, ...(meaning ? { description: meaning } : {}), schema }
}

/** `serverId` → "Id of the server.", `snapshots/{name}` → "Name of the snapshot.", `fault/{kind}` → "Kind of the fault." */
function describePart(name: string, path: string): string | undefined {
  if (name.endsWith('Id')) return `Id of the ${name.slice(0, -2)}.`
  const noun = path.split('/').find((_, index, parts) => parts[index + 1] === `{${name}}`)
  return noun && `${name[0]?.toUpperCase()}${name.slice(1)} of the ${noun.replace(/s$/, '')}.`
}

function completeResponse(status: string, response: ResponseObject, schemas: SharedSchemas): ResponseObject {
  const given = Object.values(response.content ?? {})[0]?.schema
  const content = response.content ? { content: shareContent(response.content, schemas) } : {}
  return { description: meaningOf(status, given), ...content }
}

function meaningOf(status: string, schema: Schema | undefined): string {
  return typeof schema?.description === 'string' ? schema.description : (SUCCESSES[status] ?? 'Answered.')
}

const failure = (description: string): ResponseObject => ({
  description,
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${ErrorBody.$id}` } } },
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
