import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020'
import { Elysia, t } from 'elysia'
import { describeApi, describedApp } from '../../src/describe.ts'
import { EVENT_NAMES } from '../../src/events/names.ts'
import { openApiDocument } from '../../src/http/openapi/document.ts'
import type { OpenApiDocument, Parameter, Schema } from '../../src/http/openapi/model.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { ADDED_STATUSES, CLOSED_SHAPES, MISSING_GROUPS, SPECIFIED } from './specification.ts'

const document = await describeApi()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    ...operation,
  })),
)
const find = (id: string) => {
  const found = operations.find(({ operationId }) => operationId === id)
  if (!found) throw new Error(`no operation ${id}`)
  return found
}

/** Every object of a value with the path to it. */
function* objectsOf(value: unknown, path = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>]
  for (const [key, inner] of Object.entries(value)) yield* objectsOf(inner, `${path}/${key}`)
}

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document)
}

describe('the document', () => {
  test('is valid OpenAPI 3.1 by a public validator', async () => {
    const { valid, errors } = await new Validator().validate({ ...structuredClone(document) })
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(document.openapi).toStartWith('3.1.')
  })

  test('has schemas that are valid JSON Schema 2020-12, with no keyword that a checker would pass over', () => {
    // OpenAPI's own schema leaves schema objects unchecked, since documents may choose their dialect.
    const checker = new Ajv2020({
      strict: true,
      allowUnionTypes: true,
      formats: { 'date-time': true, uri: true },
    })
    checker.addVocabulary(['components'])
    const { schemas } = document.components
    for (const name of Object.keys(schemas)) {
      const root = { components: { schemas }, $ref: `#/components/schemas/${name}` }
      expect(() => checker.compile(structuredClone(root))).not.toThrow()
    }
    const inline = operations.flatMap(({ parameters = [], requestBody, responses }) => [
      ...parameters.flatMap((one) => ('schema' in one ? [one.schema] : [])),
      ...[requestBody, ...Object.values(responses)].flatMap((body) =>
        Object.values(body?.content ?? {}).map(({ schema }) => schema),
      ),
    ])
    expect(inline.length).toBeGreaterThan(operations.length)
    for (const schema of inline) {
      expect(() => checker.compile(structuredClone({ components: { schemas }, ...schema }))).not.toThrow()
    }
  })

  test('carries the name and the version of the interface', () => {
    expect(document.info).toMatchObject({ title: 'berth', version: '0.1.0' })
    expect(document.info.description).not.toBe('')
    expect(document.servers[0]?.url).toBe('/')
  })

  test('resolves all of its references', () => {
    const references = [...objectsOf(document)].flatMap(([, { $ref }]) =>
      typeof $ref === 'string' ? [$ref] : [],
    )
    expect(references.length).toBeGreaterThan(10)
    expect(references.filter((reference) => typeof resolve(reference) !== 'object')).toEqual([])
  })

  test("carries nothing of the validator's own dialect", () => {
    const foreign = [...objectsOf(document)].filter(
      ([path, object]) =>
        !path.endsWith('/properties') && ['$id', 'nullable', '~kind'].some((keyword) => keyword in object),
    )
    expect(foreign).toEqual([])
    const coercing = [...objectsOf(document)].filter(([, { format }]) =>
      ['integer', 'numeric', 'boolean', 'ObjectString', 'ArrayString'].includes(String(format)),
    )
    expect(coercing).toEqual([])
  })

  test('writes every named shape once, nested ones too', () => {
    const { schemas } = document.components
    expect(schemas.Error).toMatchObject({ required: ['error', 'message'], additionalProperties: false })
    expect(find('servers.list').responses[200]?.content?.['application/json']?.schema).toMatchObject({
      properties: { servers: { items: { $ref: '#/components/schemas/Server' } } },
    })
    expect(find('files.read').responses[200]?.content?.['application/json']?.schema).toEqual({
      anyOf: [{ $ref: '#/components/schemas/FileList' }, { $ref: '#/components/schemas/FileContent' }],
    })
  })

  test('closes the shapes that the specification closes', () => {
    for (const name of CLOSED_SHAPES) {
      const schema = document.components.schemas[name]
      if (schema) expect([name, schema.additionalProperties]).toEqual([name, false])
    }
    expect(document.components.schemas.Server?.additionalProperties).toBe(false)
  })

  test('describes every tag that it uses', () => {
    const described = document.tags.filter(({ description }) => description !== '').map(({ name }) => name)
    expect(new Set(operations.flatMap(({ tags }) => tags))).toEqual(new Set(described))
  })
})

describe('operations', () => {
  test('every route is one, but the document itself and its page', async () => {
    const { routes } = await describedApp()
    const hidden = routes.filter(({ hooks }) => hooks.detail?.hide)
    expect(hidden.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'GET /',
      'GET /docs',
      'GET /docs/scalar.js',
      'GET /openapi.json',
    ])
    expect(operations.length).toBe(routes.length - hidden.length)
  })

  test('each has an id noun.verb of its own, a summary, one tag and described answers', () => {
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    for (const { operationId, summary, tags, responses } of operations) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/)
      expect(summary).toMatch(/^[A-Z].{5,}[^.]$/)
      expect(tags.length).toBe(1)
      for (const [status, response] of Object.entries(responses)) {
        expect(response.description).toMatch(/\.$/)
        expect(response.description).not.toContain('Response for')
        expect([operationId, status, Object.keys(response.content ?? {})[0]]).toEqual([
          operationId,
          status,
          'application/json',
        ])
      }
      expect(Object.keys(responses).some((status) => status.startsWith('2'))).toBe(true)
    }
  })

  test('every failure has the shared error body', () => {
    for (const { responses } of operations) {
      for (const [status, { content }] of Object.entries(responses)) {
        if (status.startsWith('2')) continue
        expect(content?.['application/json']?.schema).toEqual({ $ref: '#/components/schemas/Error' })
      }
    }
  })

  test('all need a bearer credential', () => {
    expect(document.security).toEqual([{ apiKey: [] }])
    expect(document.components.securitySchemes.apiKey).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(operations.filter(({ security }) => security?.length === 0)).toEqual([])
    for (const { security = document.security } of operations) {
      for (const name of security.flatMap((requirement) => Object.keys(requirement))) {
        expect(document.components.securitySchemes).toHaveProperty(name)
      }
    }
  })

  test('every parameter of a path is declared, required and described', () => {
    for (const { path, parameters = [] } of operations) {
      const declared = parameters.filter((one): one is Parameter => 'in' in one && one.in === 'path')
      expect(declared.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{[^}]+\}/g) ?? [])
      for (const { required, description } of declared)
        expect([required, description]).toEqual([true, expect.any(String)])
    }
  })

  test('POST takes an Idempotency-Key and says so; others do not', () => {
    for (const { method, operationId, parameters = [], responses } of operations) {
      const taken = parameters.some(
        (one) => '$ref' in one && one.$ref === '#/components/parameters/IdempotencyKey',
      )
      expect([operationId, taken]).toEqual([operationId, method === 'POST'])
      if (taken) expect(responses).toHaveProperty('400')
    }
    expect(document.components.parameters.IdempotencyKey).toMatchObject({
      name: 'Idempotency-Key',
      in: 'header',
    })
  })

  test('a body is required but where the request may leave it out, and is JSON', () => {
    expect(find('servers.create').requestBody?.required).toBe(false)
    for (const id of ['servers.update', 'servers.act', 'exec.run', 'files.write']) {
      expect(find(id).requestBody?.required).toBe(true)
    }
    for (const { operationId, requestBody, responses } of operations) {
      if (!requestBody) continue
      const [first, ...others] = Object.keys(requestBody.content)
      expect(first).toBe('application/json')
      expect(others).toEqual(operationId === 'projects.create' ? ['multipart/form-data'] : [])
      expect(responses).toHaveProperty('413')
    }
  })

  test('exec answers as JSON or as an event stream', () => {
    expect(Object.keys(find('exec.run').responses[200]?.content ?? {})).toEqual([
      'application/json',
      'text/event-stream',
    ])
  })
})

describe('webhooks', () => {
  const schemaOf = (event: string) => {
    const schema = document.webhooks[event]?.post?.requestBody?.content['application/json']?.schema
    return resolve(String(schema?.$ref)) as Schema
  }

  test('describes what is sent for each of the fifteen events', () => {
    expect(Object.keys(document.webhooks)).toEqual([...EVENT_NAMES])
    for (const event of EVENT_NAMES) {
      const operation = document.webhooks[event]?.post
      expect(operation?.parameters?.map((one) => ('name' in one ? one.name : ''))).toEqual([
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
      ])
      expect(schemaOf(event)).toMatchObject({ properties: { event: { const: event } } })
    }
  })

  test('the examples of payloads, which synthetic events carry, are valid by their schemas', () => {
    const checker = new Ajv2020({ strict: true, formats: { 'date-time': true } })
    for (const event of EVENT_NAMES) {
      const { examples, ...schema } = schemaOf(event)
      const valid = checker.compile(schema)
      expect([event, valid((examples as unknown[])[0])]).toEqual([event, true])
      expect(valid({ event, created_at: 'x' })).toBe(event.startsWith('tuning.'))
    }
    expect(schemaOf('deployment.live')).toMatchObject({
      required: ['event', 'server_id', 'url', 'created_at'],
    })
  })
})

describe("the specification's tables", () => {
  for (const { id, method, path, success, errors } of SPECIFIED) {
    const missing = MISSING_GROUPS.includes(id.slice(0, id.indexOf('.')))
    const name = `${id}: ${method} ${path} with ${[success, ...errors].join(', ')}`
    if (missing) {
      test(`${id} is not there yet`, () =>
        expect(operations.map(({ operationId }) => operationId)).not.toContain(id))
      continue
    }
    test(name, () => {
      const found = find(id)
      expect([found.method, found.path]).toEqual([method, path])
      const statuses = Object.keys(found.responses).map(Number)
      expect(statuses.filter((status) => status < 300)).toEqual([success])
      for (const status of errors) expect(statuses).toContain(status)
      const added = statuses.filter((status) => status >= 300 && !errors.includes(status))
      expect(added.filter((status) => !ADDED_STATUSES[id]?.includes(status))).toEqual([])
    })
  }
})

describe('what a route may declare', () => {
  const documentOf = (response: Record<number, Schema>) =>
    openApiDocument(
      new Elysia().get('/thing', () => ({}) as never, {
        response: response as never,
        detail: { operationId: 'thing.get', summary: 'Get the thing', tags: ['Servers'] },
      }),
    )
  const Thing = t.Object({ size: t.Integer(), labels: t.Record(t.String(), t.String()) }, { $id: 'Thing' })

  test('a named shape or null refers to the shape, which itself is never null', () => {
    const { components, paths } = documentOf({ 200: t.Object({ thing: t.Nullable(Thing) }) as never })
    expect(paths['/thing']?.get?.responses[200]?.content?.['application/json']?.schema).toMatchObject({
      properties: { thing: { anyOf: [{ $ref: '#/components/schemas/Thing' }, { type: 'null' }] } },
    })
    expect(components.schemas.Thing).toEqual({
      type: 'object',
      required: ['size', 'labels'],
      properties: {
        size: { type: 'integer' },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
    })
  })

  test('two shapes with one name are refused, since clients would get one of them wrong', () => {
    const other = t.Object({ colour: t.String() }, { $id: 'Thing' })
    expect(() => documentOf({ 200: Thing as never, 201: other as never })).toThrow('"Thing"')
  })
})

describe('GET /openapi.json', () => {
  let berth: TestBerth
  beforeAll(async () => {
    berth = await testBerth()
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  test('answers anybody with the very document that needs no running instance', async () => {
    const response = await fetch(`${berth.info.base_url}/openapi.json`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect((await response.json()) as OpenApiDocument).toEqual(document)
  })

  test('is not sent again to whoever has it', async () => {
    const etag = (await fetch(`${berth.info.base_url}/openapi.json`)).headers.get('etag') ?? ''
    const again = await fetch(`${berth.info.base_url}/openapi.json`, { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
    expect(await again.text()).toBe('')
  })

  test('what it says of credentials is so: 401 without one everywhere', async () => {
    for (const { method, path, operationId } of operations) {
      const { status } = await fetch(`${berth.info.base_url}${path.replaceAll(/\{\w+\}/g, 'none')}`, {
        method,
      })
      expect([operationId, status]).toEqual([operationId, 401])
    }
  })
})
