import { isDeepStrictEqual } from 'node:util'
import type { Schema } from './model.ts'

/**
 * Keywords whose value is one schema, a list of schemas, or schemas by name (JSON Schema 2020-12, core, section 10).
 */
const SCHEMA = ['items', 'additionalProperties', 'not', 'contains', 'propertyNames']
const SCHEMAS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED_SCHEMAS = ['properties', 'patternProperties']

/** The pattern of a record that allows any name. */
const ANY_NAME = '^(.*)$'

/**
 * The named shapes (`$id`), each stored once for `components.schemas`. Converts the validator's dialect to plain JSON
 * Schema.
 */
export class SharedSchemas {
  readonly #byName = new Map<string, Schema>()

  /**
   * Adds a schema with all nested ones.
   *
   * @returns the schema, or a reference to it if it has a name
   * @throws Error if two different shapes have one name
   */
  share(schema: Schema): Schema {
    // Titles are for messages. Client generators would use them as names.
    const { $id: name, nullable: _, title: _words, ...rest } = schema
    const plain = withNull(plainObject(withoutCoercion(this.#shareNested(rest))))
    if (typeof name !== 'string') return plain
    const reference = { $ref: `#/components/schemas/${name}` }
    if (Array.isArray(plain.type) && plain.type.includes('null')) {
      // A nullable shape has the `$id` of the shape without null, so null is removed from the stored one.
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

  /** Returns all named shapes, sorted by name. */
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

/** Formats of texts that Elysia accepts in place of another type, such as a number in a query. */
const COERCED = new Set(['integer', 'numeric', 'boolean', 'Date', 'ObjectString', 'ArrayString'])

/** Removes the texts that a number, boolean or object may also be parsed from. Callers should not send them. */
function withoutCoercion(schema: Schema): Schema {
  if (!Array.isArray(schema.anyOf)) return schema
  const kept = schema.anyOf.filter((one: Schema) => one.type !== 'string' || !COERCED.has(String(one.format)))
  if (kept.length === schema.anyOf.length) return schema
  const { anyOf: _, ...rest } = schema
  return kept.length === 1 ? { ...rest, ...(kept[0] as Schema) } : { ...rest, anyOf: kept }
}

/** Adds null to the values of a nullable enum, as JSON Schema requires. The generator adds it only to the types. */
function withNull(schema: Schema): Schema {
  const { type, enum: values } = schema
  if (!Array.isArray(type) || !type.includes('null') || !Array.isArray(values)) return schema
  return values.includes(null) ? schema : { ...schema, enum: [...values, null] }
}

/** Rewrites an object's rule for additional fields to the form that generators of clients and examples understand. */
function plainObject(schema: Schema): Schema {
  const { patternProperties: patterns, additionalProperties: further, ...rest } = schema
  const [[pattern, value] = [], ...others] = isSchema(patterns) ? Object.entries(patterns) : []
  if (pattern !== undefined && others.length === 0) {
    const given = isSchema(rest.propertyNames) ? rest.propertyNames : {}
    const names = pattern === ANY_NAME ? given : { ...given, pattern }
    return {
      ...rest,
      ...(Object.keys(names).length > 0 ? { propertyNames: names } : {}),
      additionalProperties: value,
    }
  }
  // Additional fields are allowed by default. An explicit `true` would add invented fields to examples.
  if (further === true) return patterns === undefined ? rest : { ...rest, patternProperties: patterns }
  return schema
}
