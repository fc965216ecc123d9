import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020'
import { Elysia, t } from 'elysia'
import { openApiDocument } from '../../src/contract/openapi/document.ts'
import type { OpenApiDocument, Schema } from '../../src/contract/openapi/model.ts'
import { ERROR_STATUS } from '../../src/errors.ts'
import { describeApi, describedApp } from '../../src/instance/describe.ts'
import { EVENT_NAMES } from '../../src/resources/events/names.ts'
import { FRAMES_TYPE } from '../../src/resources/exec/frames.ts'
import { API_DOCUMENT } from '../../src/resources/openapi.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { followsTheRules, operationsOf, resolve } from '../support/openapi-rules.ts'
import { ADDED_STATUSES, ADDED_SUCCESSES, CLOSED_SHAPES, MISSING_GROUPS, SPECIFIED } from './specification.ts'

const document = await describeApi()
const operations = operationsOf(document)
const find = (id: string) => {
  const found = operations.find(({ operationId }) => operationId === id)
  if (!found) throw new Error(`no operation ${id}`)
  return found
}

describe('the document', () => {
  followsTheRules(document)

  test('carries the name and the version of the interface', () => {
    expect(document.info).toMatchObject({ title: 'berth', version: '0.1.0' })
    expect(document.info.description).not.toBe('')
    expect(document.servers[0]?.url).toBe('/')
  })

  test('writes every named shape once, nested ones too', () => {
    const { schemas } = document.components
    expect(find('servers.list').responses[200]?.content?.['application/json']?.schema).toEqual({
      $ref: '#/components/schemas/ServerList',
    })
    expect(schemas.ServerList).toMatchObject({
      properties: { servers: { items: { $ref: '#/components/schemas/Server' } } },
    })
    expect(schemas.FilesOrContent).toEqual({
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
})

/** The media types of bodies that are bytes. */
const BYTES: Record<string, string> = {
  'exec.stream': 'application/octet-stream',
  'files.upload': 'application/octet-stream',
}

describe('operations', () => {
  test('every route is one, but the document itself and the pages for people', async () => {
    const { routes } = await describedApp()
    const hidden = routes.filter(({ hooks }) => hooks.detail?.hide)
    expect(hidden.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'GET /docs',
      'GET /docs/guide',
      'GET /docs/guide/*',
      'GET /docs/reference.css',
      'GET /docs/reference.js',
      'GET /llms.txt',
      'GET /openapi.json',
      'GET /pages/mark.svg',
      'GET /pages/style.css',
    ])
    expect(operations.length).toBe(routes.length - hidden.length)
  })

  test('each has an id noun.verb', () => {
    for (const { operationId } of operations) expect(operationId).toMatch(/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/)
  })

  test('every failure, also one of a status that is not listed, has a body with a code and a sentence', () => {
    for (const { responses } of operations) {
      expect(responses).toHaveProperty('default')
      for (const [status, { content }] of Object.entries(responses)) {
        if (/^(?:2|101)/.test(status)) continue
        expect(content?.['application/json']?.schema).toEqual({ $ref: '#/components/schemas/ErrorBody' })
      }
    }
    expect(document.components.schemas.ErrorBody).toMatchObject({
      required: ['error', 'message'],
      properties: { error: { $ref: '#/components/schemas/ErrorCode' }, message: { type: 'string' } },
    })
    expect(document.components.schemas.ErrorCode?.enum).toEqual(Object.keys(ERROR_STATUS))
  })

  test('every response has a shape with a name', () => {
    for (const { operationId, responses } of operations) {
      for (const [status, { content }] of Object.entries(responses)) {
        if (status === '101' || operationId === 'files.download') continue
        const schema = Object.values(content ?? {})[0]?.schema
        expect([operationId, schema?.$ref]).toEqual([
          operationId,
          expect.stringMatching(/^#\/components\/schemas\/\w+$/),
        ])
      }
    }
  })

  test('responses with a credential are kept out of caches', () => {
    const secret = operations.filter(({ responses }) =>
      Object.values(responses).some(({ headers }) => headers?.['Cache-Control'] !== undefined),
    )
    expect(secret.map(({ operationId }) => operationId)).toEqual(['keys.create', 'webhooks.create'])
  })

  test('all need a bearer credential', () => {
    expect(document.security).toEqual([{ bearerAuth: [] }])
    expect(document.components.securitySchemes.bearerAuth).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(operations.filter(({ security }) => security?.length === 0)).toEqual([])
    for (const { security = document.security } of operations) {
      for (const name of security.flatMap((requirement) => Object.keys(requirement))) {
        expect(document.components.securitySchemes).toHaveProperty(name)
      }
    }
  })

  test('POST takes an Idempotency-Key and says so; others do not', () => {
    for (const { method, operationId, parameters = [], responses } of operations) {
      const taken = parameters.some(
        (one) => '$ref' in one && one.$ref === '#/components/parameters/IdempotencyKey',
      )
      // A stream of bytes cannot be compared with that of an earlier request.
      expect([operationId, taken]).toEqual([operationId, method === 'POST' && operationId !== 'exec.stream'])
      if (taken) expect(responses).toHaveProperty('400')
    }
    expect(document.components.parameters.IdempotencyKey).toMatchObject({
      name: 'Idempotency-Key',
      in: 'header',
    })
  })

  test('a body is required but where the request may leave it out, and is JSON, or a stream of bytes', () => {
    expect(find('servers.create').requestBody?.required).toBe(false)
    for (const id of ['servers.update', 'servers.act', 'exec.run', 'files.write']) {
      expect(find(id).requestBody?.required).toBe(true)
    }
    for (const { operationId, requestBody, responses } of operations) {
      if (!requestBody) continue
      const [first, ...others] = Object.keys(requestBody.content)
      if (first === BYTES[operationId]) continue
      expect(first).toBe('application/json')
      const takesForm = ['projects.create', 'projects.detect', 'projects.push', 'deployments.push'].includes(
        operationId ?? '',
      )
      expect(others).toEqual(takesForm ? ['multipart/form-data'] : [])
      expect(responses).toHaveProperty('413')
    }
  })

  test('streams are declared beside JSON, of which clients are generated first', () => {
    const contentOf = (id: string) => Object.keys(find(id).responses[200]?.content ?? {})
    const streamed = operations.filter(({ responses }) =>
      responses[200]?.description.includes('With `Accept: text/event-stream` a stream of events instead: '),
    )
    expect(streamed.map(({ operationId }) => operationId).sort()).toEqual([
      'builds.logs',
      'deployments.logs',
      'exec.run',
      'exec.stream',
      'executions.output',
      'projects.logs',
      'tasks.events',
      'usage.get',
      'usage.servers',
    ])
    for (const { operationId } of streamed) {
      expect([operationId, ...contentOf(operationId)]).toEqual([
        operationId,
        'application/json',
        'text/event-stream',
        ...(operationId.startsWith('exec.') ? ['application/octet-stream', FRAMES_TYPE] : []),
      ])
    }
    expect(contentOf('servers.list')).toEqual(['application/json'])
  })
})

describe('webhooks', () => {
  const { webhooks = {} } = document
  const schemaOf = (event: string) => {
    const schema = webhooks[event]?.post?.requestBody?.content['application/json']?.schema
    return resolve(document, String(schema?.$ref)) as Schema
  }

  test('describes what is sent for each of the fifteen events', () => {
    expect(Object.keys(webhooks)).toEqual([...EVENT_NAMES])
    for (const event of EVENT_NAMES) {
      const operation = webhooks[event]?.post
      expect(operation?.parameters?.map((one) => ('name' in one ? one.name : ''))).toEqual([
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
      ])
      expect(schemaOf(event)).toMatchObject({ properties: { event: { enum: [event] } } })
    }
  })

  test('the examples of payloads, which synthetic events carry, are valid by their schemas', () => {
    const checker = new Ajv2020({ strict: true, formats: { 'date-time': true, double: true } })
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
      const more = ADDED_SUCCESSES[id] ?? []
      expect(statuses.filter((status) => status < 300)).toEqual([success, ...more])
      for (const status of errors) expect(statuses).toContain(status)
      // Every operation answers 503 while berth stops or begins anew, and 415 to a body with a content coding.
      expect(statuses).toContain(503)
      expect(statuses.includes(415)).toBe(find(id).requestBody !== undefined)
      const everywhere = [415, 503]
      const added = statuses.filter(
        (status) => status >= 300 && !everywhere.includes(status) && !errors.includes(status),
      )
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
      API_DOCUMENT,
    )
  const Thing = t.Object({ size: t.Integer(), labels: t.Record(t.String(), t.String()) }, { $id: 'Thing' })

  test('a named shape or null refers to the shape, which itself is never null', () => {
    const Response = t.Object({ thing: t.Nullable(Thing) }, { $id: 'MaybeThing' })
    const { components, paths } = documentOf({ 200: Response as never })
    expect(paths['/thing']?.get?.responses[200]?.content?.['application/json']?.schema).toEqual({
      $ref: '#/components/schemas/MaybeThing',
    })
    expect(components.schemas.MaybeThing).toMatchObject({
      properties: { thing: { anyOf: [{ $ref: '#/components/schemas/Thing' }, { type: 'null' }] } },
    })
    expect(components.schemas.Thing).toEqual({
      type: 'object',
      required: ['size', 'labels'],
      properties: {
        size: { type: 'integer', format: 'int64' },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
    })
  })

  test('a response without a name is refused, since nobody would have chosen what clients call it', () => {
    expect(() => documentOf({ 200: t.Object({ thing: Thing }) as never })).toThrow('thing.get')
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

  test('is not sent again to a client that has it', async () => {
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
