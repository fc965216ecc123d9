import { expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020'
import type { OpenApiDocument, OperationObject, Parameter } from '../../src/contract/openapi/model.ts'

/** The media types of successes that are streams and nothing else. */
const GIVEN: Readonly<Record<string, string>> = {
  'changes.stream': 'text/event-stream',
  'files.download': 'application/octet-stream',
  'servers.export': 'application/octet-stream',
}

/** An operation with where it stands. */
export type Located = OperationObject & { method: string; path: string }

/** All operations of a document. */
export const operationsOf = (document: OpenApiDocument): Located[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      ...operation,
    })),
  )

/** A checker of JSON Schema 2020-12 that passes over no keyword that it does not know. */
export function schemaChecker(): Ajv2020 {
  const checker = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    formats: {
      binary: true,
      byte: true,
      'date-time': true,
      double: true,
      int64: true,
      uri: true,
    },
  })
  checker.addVocabulary(['components', 'discriminator'])
  return checker
}

/** What a reference inside a document leads to. */
export const resolve = (document: OpenApiDocument, reference: string): unknown =>
  reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document)

/** Every object of a value with the path to it. */
function* objectsOf(value: unknown, path = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>]
  for (const [key, inner] of Object.entries(value)) yield* objectsOf(inner, `${path}/${key}`)
}

/** The tests that every document of berth passes, whatever it describes. */
export function followsTheRules(document: OpenApiDocument): void {
  const operations = operationsOf(document)

  test('is valid OpenAPI 3.1 by a public validator', async () => {
    const { valid, errors } = await new Validator().validate({ ...structuredClone(document) })
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(document.openapi).toStartWith('3.1.')
  })

  test('has schemas that are valid JSON Schema 2020-12, with no keyword that a checker would pass over', () => {
    // OpenAPI's own schema leaves schema objects unchecked, since documents may choose their dialect.
    const checker = schemaChecker()
    checker.addVocabulary(['inline'])
    const { schemas } = document.components
    const inline = operations.flatMap(({ parameters = [], requestBody, responses }) => [
      ...parameters.flatMap((one) => ('schema' in one ? [one.schema] : [])),
      ...[requestBody, ...Object.values(responses)].flatMap((body) =>
        Object.values(body?.content ?? {}).map(({ schema }) => schema),
      ),
    ])
    expect(inline.length).toBeGreaterThan(operations.length)
    // All in one schema: a schema that others refer to is compiled once, and not once more for each of these.
    checker.addSchema(structuredClone({ $id: 'document', components: { schemas }, inline }))
    const paths = [
      ...Object.keys(schemas).map((name) => `components/schemas/${name}`),
      ...inline.map((_, index) => `inline/${index}`),
    ]
    for (const path of paths) expect(() => checker.compile({ $ref: `document#/${path}` })).not.toThrow()
    // What a reference leads to is compiled without a look at the rules that JSON Schema has for schemas.
    for (const schema of [...Object.values(schemas), ...inline])
      expect([checker.validateSchema(schema as object), checker.errorsText()]).toEqual([true, 'No errors'])
  })

  test('resolves all of its references', () => {
    const references = [...objectsOf(document)].flatMap(([, { $ref }]) =>
      typeof $ref === 'string' ? [$ref] : [],
    )
    expect(references.length).toBeGreaterThan(10)
    expect(references.filter((reference) => typeof resolve(document, reference) !== 'object')).toEqual([])
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

  test('describes every tag that it uses', () => {
    const described = document.tags.filter(({ description }) => description !== '').map(({ name }) => name)
    const events = Object.values(document.webhooks ?? {}).flatMap((methods) => Object.values(methods))
    expect(new Set([...operations, ...events].flatMap(({ tags }) => tags))).toEqual(new Set(described))
  })

  test('each operation has an id of its own, a summary, one tag and described answers', () => {
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    for (const { operationId, summary, tags, responses } of operations) {
      expect([operationId, summary]).toEqual([operationId, expect.stringMatching(/^[A-Z].{5,}[^.]$/)])
      expect(tags?.length).toBe(1)
      for (const [status, response] of Object.entries(responses)) {
        expect(response.description).toMatch(/\.$/)
        expect(response.description).not.toContain('Response for')
        // A WebSocket has no body.
        if (status === '101') continue
        expect([operationId, status, Object.keys(response.content ?? {})[0]]).toEqual([
          operationId,
          status,
          /^2/.test(status)
            ? (GIVEN[operationId.replace('control.', '')] ?? 'application/json')
            : 'application/json',
        ])
      }
      expect(Object.keys(responses).some((status) => /^(?:2|101)/.test(status))).toBe(true)
    }
  })

  test('every parameter of a path is declared, required and described', () => {
    for (const { path, parameters = [] } of operations) {
      const declared = parameters.filter((one): one is Parameter => 'in' in one && one.in === 'path')
      expect(declared.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{[^}]+\}/g) ?? [])
      for (const { name, required, description } of declared)
        expect([path, name, required, description]).toEqual([path, name, true, expect.any(String)])
    }
  })
}
