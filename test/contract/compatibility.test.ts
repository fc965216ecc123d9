import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { describeApi, describeControl } from '../../src/instance/describe.ts'
import { openapiBreaks } from '../support/openapi-breaks.ts'

const released = (name: string) => Bun.file(join(import.meta.dir, '../../fixtures/openapi', name)).json()

test.each([
  ['the API', 'api.json', describeApi],
  ['the control API', 'control.json', describeControl],
])('%s breaks no client of the last release', async (_, file, describeIt) => {
  const now = JSON.parse(JSON.stringify(await describeIt()))
  expect(openapiBreaks(await released(file), now)).toEqual([])
})

/** A document with one operation, whose request and response have a schema each. */
const document = (request: unknown, response: unknown, more: object = {}) => ({
  paths: {
    '/things': {
      post: {
        operationId: 'things.create',
        requestBody: { content: { 'application/json': { schema: request } } },
        responses: { 200: { content: { 'application/json': { schema: response } } } },
        ...more,
      },
    },
  },
  components: {
    schemas: { Thing: { type: 'object', properties: { next: { $ref: '#/components/schemas/Thing' } } } },
  },
})

const text = { type: 'string' }
const object = (properties: object, required: string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  required,
  ...more,
})

describe('the comparison', () => {
  test.each<
    [name: string, before: [unknown, unknown, object?], after: [unknown, unknown, object?], found: string[]]
  >([
    [
      'a removed operation',
      [text, text],
      [text, text, { operationId: 'things.make' }],
      ['is things.make now'],
    ],
    [
      'a new required field of a request',
      [object({}), text],
      [object({ a: text }, ['a']), text],
      ['body application/json.a has become required'],
    ],
    [
      'a removed field of a request',
      [object({ a: text }), text],
      [object({}), text],
      ['body application/json.a is removed'],
    ],
    [
      'a field of a response that may be missing',
      [text, object({ a: text }, ['a'])],
      [text, object({ a: text })],
      ['200 application/json.a may be missing'],
    ],
    [
      'a removed field of a response',
      [text, object({ a: text })],
      [text, object({})],
      ['200 application/json.a is removed'],
    ],
    [
      'another type',
      [text, object({ a: text })],
      [text, object({ a: { type: 'number' } })],
      ['200 application/json.a is number, was string'],
    ],
    [
      'a type that may be null',
      [text, object({ a: text })],
      [text, object({ a: { type: ['string', 'null'] } })],
      ['200 application/json.a is null, was string'],
    ],
    [
      'a value that a request may have no longer',
      [{ enum: ['a', 'b'] }, text],
      [{ enum: ['a'] }, text],
      ['body application/json takes "b" no longer'],
    ],
    [
      'a lower limit of a length',
      [{ ...text, maxLength: 9 }, text],
      [{ ...text, maxLength: 8 }, text],
      ['body application/json has maxLength 8, had 9'],
    ],
    [
      'a closed object',
      [object({}), text],
      [object({}, [], { additionalProperties: false }), text],
      ['body application/json takes no other fields any more'],
    ],
    [
      'a field that no kind of a response has any more',
      [text, object({ type: text, a: text })],
      [
        text,
        { oneOf: [object({ type: { enum: ['x'] } }, ['type']), object({ type: { enum: ['y'] } }, ['type'])] },
      ],
      ['200 application/json.a is removed', '200 application/json.a is removed'],
    ],
    [
      'a required field that one kind of a response has no more',
      [text, object({ type: text, a: text }, ['type', 'a'])],
      [
        text,
        {
          oneOf: [
            object({ type: { enum: ['x'] } }, ['type']),
            object({ type: { enum: ['y'] }, a: text }, ['type', 'a']),
          ],
        },
      ],
      ['200 application/json.a is removed'],
    ],
    ['a removed status', [text, text], [text, text, { responses: { 201: {} } }], ['status 200 is removed']],
    [
      'a new required parameter',
      [text, text],
      [text, text, { parameters: [{ in: 'query', name: 'q', required: true, schema: text }] }],
      ['query parameter q is new and required'],
    ],
  ])('names %s', (_, before, after, found) => {
    expect(openapiBreaks(document(...before), document(...after))).toEqual(
      found.map((one) => `things.create: ${one}`),
    )
  })

  test.each<[name: string, before: [unknown, unknown], after: [unknown, unknown]]>([
    ['an optional field', [object({}), object({})], [object({ a: text }), object({ a: text }, ['a'])]],
    ['a new value in a response', [text, { enum: ['a'] }], [text, { type: 'string', enum: ['a', 'b'] }]],
    [
      'a name for a schema',
      [text, object({ next: { $ref: '#/components/schemas/Thing' } })],
      [text, object({ next: object({ next: { $ref: '#/components/schemas/Thing' } }) })],
    ],
    [
      'another way to write null',
      [text, { type: ['string', 'null'], enum: ['a', null] }],
      [text, { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }] }],
    ],
    [
      'another way to write an object or null',
      [text, { type: ['object', 'null'], properties: { a: text }, required: ['a'] }],
      [text, { anyOf: [object({ a: text }, ['a']), { type: 'null' }] }],
    ],
    [
      'a response of kinds that say which fields each has',
      [text, object({ type: { enum: ['x', 'y'] }, a: text }, ['type'])],
      [
        text,
        {
          oneOf: [
            object({ type: { enum: ['x'] } }, ['type']),
            object({ type: { enum: ['y'] }, a: text }, ['type', 'a']),
          ],
        },
      ],
    ],
    ['a wider request', [{ enum: ['a'] }, text], [text, text]],
  ])('lets %s come', (_, before, after) => {
    expect(openapiBreaks(document(...before), document(...after))).toEqual([])
  })
})
