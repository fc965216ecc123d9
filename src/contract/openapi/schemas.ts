import { isDeepStrictEqual } from 'node:util'
import type { Schema } from './model.ts'

/** Keywords whose value is one schema, a list of schemas, and schemas by name (JSON Schema 2020-12, core, 10). */
const SCHEMA = ['items', 'additionalProperties', 'not', 'contains', 'propertyNames']
const SCHEMAS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED_SCHEMAS = ['properties', 'patternProperties']

/** The pattern that stands for "any name" where a shape is a record. */
const ANY_NAME = '^(.*)$'

/**
 * The shapes that have a name (`$id`), each written once under `components.schemas`. What the
 * generator leaves of the validator's own dialect is turned into plain JSON Schema on the way.
 */
export class SharedSchemas {
  readonly #byName = new Map<string, Schema>()

  /**
   * Takes a schema in, with all that it nests.
   *
   * @returns the schema, or a reference to it where it has a name
   * @throws Error where two different shapes claim one name
   */
  share(schema: Schema): Schema {
    // A title is for messages: generators of clients take it for a name.
    const { $id: name, nullable: _, title: _words, ...rest } = schema
    const plain = withNull(plainObject(withoutCoercion(this.#shareNested(rest))))
    if (typeof name !== 'string') return plain
    const reference = { $ref: `#/components/schemas/${name}` }
    if (Array.isArray(plain.type) && plain.type.includes('null')) {
      // "This shape or null" arrives with the shape's own name, which means the shape without null.
      const type = plain.type.filter((one) => one !== 'null')
      const { enum: values } = plain
      this.#keep(name, {
        ...plain,
        type: type.length === 1 ? type[0] : type,
        ...(Array.isArray(values) ? { enum: values.filter((one) => one !== null) } : {}),
      })
      return { anyOf: [reference, { type: 'null' }] }
    }
    this.#keep(name, plain)
    return reference
  }

  /** All of them, sorted by name. */
  toObject(): Record<string, Schema> {
    return Object.fromEntries([...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #keep(name: string, schema: Schema): void {
    const known = this.#byName.get(name)
    if (known && !isDeepStrictEqual(known, schema)) {
      throw new Error(`Two different shapes have the $id "${name}": give each its own.`)
    }
    this.#byName.set(name, schema)
  }

  #shareNested(schema: Schema): Schema {
    const shared: Schema = { ...schema }
    for (const keyword of SCHEMA) {
      if (isSchema(schema[keyword])) shared[keyword] = this.share(schema[keyword])
    }
    for (const keyword of SCHEMAS) {
      const list = schema[keyword]
      if (Array.isArray(list)) shared[keyword] = list.map((one) => (isSchema(one) ? this.share(one) : one))
    }
    for (const keyword of NAMED_SCHEMAS) {
      const named = schema[keyword]
      if (!isSchema(named)) continue
      shared[keyword] = Object.fromEntries(
        Object.entries(named).map(([key, one]) => [key, isSchema(one) ? this.share(one) : one]),
      )
    }
    return shared
  }
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Formats with which Elysia says "a text that reads as this": how a number comes out of a query. */
const COERCED = new Set(['integer', 'numeric', 'boolean', 'Date', 'ObjectString', 'ArrayString'])

/** Takes the texts out that a number, boolean or object may also be read from: no caller is to send them. */
function withoutCoercion(schema: Schema): Schema {
  if (!Array.isArray(schema.anyOf)) return schema
  const kept = schema.anyOf.filter((one: Schema) => one.type !== 'string' || !COERCED.has(String(one.format)))
  if (kept.length === schema.anyOf.length) return schema
  const { anyOf: _, ...rest } = schema
  return kept.length === 1 ? { ...rest, ...(kept[0] as Schema) } : { ...rest, anyOf: kept }
}

/** "One of these or null" arrives with null among the types alone; JSON Schema wants it among the values as well. */
function withNull(schema: Schema): Schema {
  const { type, enum: values } = schema
  if (!Array.isArray(type) || !type.includes('null') || !Array.isArray(values)) return schema
  return values.includes(null) ? schema : { ...schema, enum: [...values, null] }
}

/** Writes an object's rule for further fields the way that generators of clients and examples understand. */
function plainObject(schema: Schema): Schema {
  const { patternProperties: patterns, additionalProperties: further, ...rest } = schema
  const [[pattern, value] = [], ...others] = isSchema(patterns) ? Object.entries(patterns) : []
  if (pattern !== undefined && others.length === 0) {
    const names = pattern === ANY_NAME ? {} : { propertyNames: { pattern } }
    return { ...rest, ...names, additionalProperties: value }
  }
  // Further fields are allowed where nothing is said; saying so puts made-up fields into examples.
  if (further === true) return patterns === undefined ? rest : { ...rest, patternProperties: patterns }
  return schema
}
