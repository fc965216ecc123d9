import { describe, expect, test } from 'bun:test'
import type { OpenApiDocument, Schema } from '../../src/contract/openapi/model.ts'
import { describeAll, describeApi, describeControl } from '../../src/instance/describe.ts'
import { followsTheRules, operationsOf } from '../support/openapi-rules.ts'

/*
 * What generators of clients need of a document beyond its validity. Each rule stands for generators that refused the document,
 * dropped a part of it, or made names of it that nobody can use.
 */

const merged = await describeAll()

/** Yields every schema of a document with the path to it. The conditions of `not` and `if` are left out, as generators do. */
function* schemasOf(document: OpenApiDocument): Generator<[path: string, schema: Schema]> {
  for (const [name, schema] of Object.entries(document.components.schemas)) yield* within(name, schema)
  for (const { operationId, parameters = [], requestBody, responses } of operationsOf(document)) {
    for (const one of parameters) if ('schema' in one) yield* within(`${operationId}?${one.name}`, one.schema)
    for (const [status, { content = {} }] of [
      ['request', requestBody ?? {}] as const,
      ...Object.entries(responses),
    ])
      for (const [type, { schema }] of Object.entries(content))
        yield* within(`${operationId} ${status} ${type}`, schema)
  }
}

function* within(path: string, schema: Schema): Generator<[path: string, schema: Schema]> {
  yield [path, schema]
  const { items, additionalProperties, propertyNames, properties = {} } = schema as Record<string, Schema>
  const nested = { items, additionalProperties, propertyNames, ...(properties as Record<string, Schema>) }
  for (const [name, one] of Object.entries(nested))
    if (typeof one === 'object') yield* within(`${path}/${name}`, one)
  for (const keyword of ['anyOf', 'oneOf', 'allOf'])
    for (const [index, one] of ((schema[keyword] ?? []) as Schema[]).entries())
      yield* within(`${path}/${keyword}/${index}`, one)
}

describe.each([
  ['the API', await describeApi()],
  ['the control API', await describeControl()],
  ['both APIs', merged],
])('the document of %s', (_, document) => {
  const named = document.components.schemas
  const schemas = [...schemasOf(document)]
  const shapeOf = (reference: unknown) => named[String(reference).split('/').at(-1) ?? ''] ?? {}
  const inline = schemas.filter(([path]) => !(path in named))
  const pathsOf = (wrong: (schema: Schema) => unknown, all = schemas) =>
    all.filter(([, schema]) => wrong(schema)).map(([path]) => path)

  test('names every object, so that no generator makes up a name', () => {
    expect(pathsOf(({ properties }) => properties, inline)).toEqual([])
  })

  test('names every choice of values, so that it is one type wherever it stands', () => {
    expect(pathsOf(({ enum: values }) => Array.isArray(values) && values.length > 1, inline)).toEqual([])
  })

  test('has no constants, which become values of requests or classes', () => {
    expect(pathsOf((schema) => 'const' in schema)).toEqual([])
  })

  test('has no null among values, of which Go makes a name', () => {
    expect(pathsOf(({ enum: values }) => Array.isArray(values) && values.includes(null))).toEqual([])
    expect(pathsOf(({ enum: values, type }) => values !== undefined && Array.isArray(type))).toEqual([])
  })

  test('has no sets, and no allOf, which some refuse', () => {
    expect(pathsOf((schema) => schema.uniqueItems !== undefined || schema.allOf !== undefined)).toEqual([])
  })

  test('declares the size of every number that 32 bits do not hold', () => {
    const isSmall = ({ type, format, maximum = Infinity }: Schema) =>
      [type].flat().includes('number')
        ? format !== 'double'
        : [type].flat().includes('integer') && format !== 'int64' && Number(maximum) >= 2 ** 31
    expect(pathsOf(isSmall)).toEqual([])
  })

  test('declares bytes as such in both words for them', () => {
    expect(
      pathsOf(({ contentMediaType: type, format }) => (type === undefined) !== (format !== 'binary')),
    ).toEqual([])
  })

  test('tells the objects of a union apart by a field, if they have one, and names all of them', () => {
    for (const [path, { oneOf, discriminator }] of schemas) {
      if (oneOf === undefined) continue
      const { propertyName = '', mapping = {} } = (discriminator ?? {}) as {
        propertyName?: string
        mapping?: Record<string, string>
      }
      const references = (oneOf as Schema[]).map(({ $ref }) => String($ref))
      expect([path, new Set(Object.values(mapping))]).toEqual([path, new Set(references)])
      for (const [value, reference] of Object.entries(mapping)) {
        const { properties = {} } = shapeOf(reference)
        const field = (properties as Record<string, Schema>)[propertyName] ?? {}
        const { enum: values } = field.$ref ? shapeOf(field.$ref) : field
        expect([path, values]).toEqual([path, expect.arrayContaining([value])])
      }
    }
  })

  test('has no name that ends as those that Go makes of operations', () => {
    expect(Object.keys(named).filter((name) => name.endsWith('Response'))).toEqual([])
  })

  test('has no two names that are one in a language', () => {
    const plain = Object.keys(named).map((name) => name.toLowerCase())
    expect(new Set(plain).size).toBe(plain.length)
    const schemes = Object.keys(document.components.securitySchemes).map((name) => name.toLowerCase())
    expect(schemes.filter((name) => plain.includes(name))).toEqual([])
  })

  test('has a response for statuses that an operation does not list', () => {
    for (const { operationId, responses } of operationsOf(document))
      expect([operationId, responses.default?.content?.['application/json']?.schema]).toEqual([
        operationId,
        { $ref: '#/components/schemas/ErrorBody' },
      ])
  })

  test('declares the headers that every response has', () => {
    for (const { operationId, responses } of operationsOf(document))
      for (const { headers } of Object.values(responses))
        expect([operationId, Object.keys(headers ?? {})]).toEqual([
          operationId,
          expect.arrayContaining(['x-request-id', 'x-berth-version']),
        ])
  })

  test('types every stream of events', () => {
    for (const [path, schema] of schemas)
      if (path.endsWith(' text/event-stream')) expect([path, typeof schema.$ref]).toEqual([path, 'string'])
  })

  test('leaves responses open for new fields, but for those that the specification closes', () => {
    const reached = new Set<string>()
    const reach = (schema: Schema): void => {
      for (const [, { $ref }] of within('', schema)) {
        const name =
          String($ref ?? '')
            .split('/')
            .at(-1) ?? ''
        if (name === '' || reached.has(name)) continue
        reached.add(name)
        reach(named[name] ?? {})
      }
    }
    const requests = new Set<string>()
    for (const { responses } of operationsOf(document))
      for (const { content = {} } of Object.values(responses))
        for (const { schema } of Object.values(content)) reach(schema)
    const inResponses = new Set(reached)
    reached.clear()
    for (const { requestBody } of operationsOf(document))
      for (const { schema } of Object.values(requestBody?.content ?? {})) reach(schema)
    for (const name of reached) requests.add(name)
    const closed = [...inResponses].filter(
      (name) => !requests.has(name) && named[name]?.additionalProperties === false,
    )
    expect(closed.filter((name) => !['Build', 'Server', 'Task'].includes(name))).toEqual([])
  })
})

describe('the document of both APIs', () => {
  followsTheRules(merged)

  test('has every operation of both, but for the WebSocket, and their schemas', async () => {
    const [api, control] = [await describeApi(), await describeControl()]
    const expected = [
      ...operationsOf(api).map(({ operationId }) => operationId),
      ...operationsOf(control).map(({ operationId }) => `control.${operationId}`),
    ].filter((id) => id !== 'terminals.attach')
    expect(operationsOf(merged).map(({ operationId }) => operationId)).toEqual(expected)
    const names = Object.keys({ ...api.components.schemas, ...control.components.schemas })
    expect(Object.keys(merged.components.schemas).sort()).toEqual(names.sort())
    expect(
      operationsOf(api)
        .filter((one) => one['x-websocket'])
        .map(({ operationId }) => operationId),
    ).toEqual(['terminals.attach'])
  })

  test('says of no value what it is not, of whose parts some make classes', async () => {
    expect(JSON.stringify(merged.components.schemas)).not.toContain('"not":')
    for (const { components } of [await describeApi(), await describeControl()])
      expect(JSON.stringify(components.schemas)).toContain('"not":')
  })

  test('names every union, so that no generator makes up a name', () => {
    const isUnion = ({ anyOf, oneOf }: Schema) =>
      [anyOf, oneOf].some((one) => Array.isArray(one) && one.filter(({ type }) => type !== 'null').length > 1)
    const nested = [...schemasOf(merged)].filter(([path]) => path.includes('/'))
    expect(nested.filter(([, schema]) => isUnion(schema)).map(([path]) => path)).toEqual([])
  })

  test('names the credential of the control API at each of its operations', () => {
    expect(merged.security).toEqual([{ bearerAuth: [] }])
    expect(Object.keys(merged.components.securitySchemes).sort()).toEqual(['adminToken', 'bearerAuth'])
    for (const { operationId, security } of operationsOf(merged)) {
      if (!operationId.startsWith('control.'))
        expect([operationId, security]).toEqual([operationId, undefined])
      else expect([[], [{ adminToken: [] }]]).toContainEqual(security as never)
    }
  })

  test('has the address of an instance, which generators need', () => {
    expect(merged.servers.map(({ url }) => url)).toEqual(['http://127.0.0.1:4747'])
  })
})
