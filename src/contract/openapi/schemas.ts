import { isDeepStrictEqual } from 'node:util'
import { USE } from '../schema.ts'
import type { Schema } from './model.ts'

/**
 * Keywords whose value is one schema, a list of schemas, or schemas by name (JSON Schema 2020-12, core, section 10).
 */
const SCHEMA = ['items', 'additionalProperties', 'contains', 'propertyNames']
const SCHEMAS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED_SCHEMAS = ['properties', 'patternProperties']

/** The pattern of a record that allows any name. */
const ANY_NAME = '^(.*)$'

/** The first integer that 32 bits do not hold. Generators take integers without a format as such. */
const INT32_END = 2 ** 31

const PREFIX = '#/components/schemas/'

/**
 * The named shapes (`$id`), each stored once for `components.schemas`. Converts the validator's dialect to the part of JSON
 * Schema that generators of clients understand.
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
    const { $id: name, [USE]: use, nullable: _, title: _words, ...rest } = schema
    const plain = this.#plain(this.shareNested(rest))
    const description = use === undefined ? {} : { description: use }
    if (typeof name !== 'string') return { ...plain, ...description }
    const known = this.#byName.get(name)
    if (known && !isDeepStrictEqual(known, plain)) {
      throw new Error(
        `Two different shapes have the $id "${name}": give each its own, or describe a use of it by used().`,
      )
    }
    this.#byName.set(name, plain)
    return { $ref: `${PREFIX}${name}`, ...description }
  }

  /** Returns a schema with references in place of the named ones inside it. */
  shareNested(schema: Schema): Schema {
    const shared: Schema = { ...schema }
    for (const keyword of SCHEMA) {
      if (isSchema(schema[keyword])) shared[keyword] = this.#shareCopy(schema[keyword])
    }
    for (const keyword of SCHEMAS) {
      const list = schema[keyword]
      if (Array.isArray(list))
        shared[keyword] = list.map((one) => (isSchema(one) ? this.#shareCopy(one) : one))
    }
    for (const keyword of NAMED_SCHEMAS) {
      const named = schema[keyword]
      if (!isSchema(named)) continue
      shared[keyword] = Object.fromEntries(
        Object.entries(named).map(([key, one]) => [key, isSchema(one) ? this.#shareCopy(one) : one]),
      )
    }
    return shared
  }

  /** Returns the stored shape that a schema refers to; undefined if it is no reference. */
  find({ $ref: reference }: Schema): Schema | undefined {
    return typeof reference === 'string' ? this.#byName.get(reference.slice(PREFIX.length)) : undefined
  }

  /** Returns all named shapes, sorted by name. */
  toObject(): Record<string, Schema> {
    return Object.fromEntries([...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Shares a schema as plain JSON, without the validator's symbols. */
  #shareCopy(schema: Schema): Schema {
    return this.share(JSON.parse(JSON.stringify(schema)))
  }

  /** Converts a schema, but for the nested ones. */
  #plain(schema: Schema): Schema {
    return [
      withoutCoercion,
      unionOfConstants,
      orNull,
      withoutConstant,
      sized,
      plainObject,
      (one: Schema) => this.#tagged(one),
    ].reduce((one, convert) => convert(one), schema)
  }

  /** Declares a union of named objects that one field tells apart as such (OpenAPI 3.1, 4.8.25). */
  #tagged(schema: Schema): Schema {
    const { anyOf: choices, ...rest } = schema
    if (!Array.isArray(choices) || choices.length < 2) return schema
    const shapes = choices.map((choice: Schema) => this.find(choice))
    const [first] = shapes
    const propertyName = Object.keys((first?.properties ?? {}) as object).find((name) =>
      shapes.every((shape) => this.#tagValues(shape, name) !== null),
    )
    if (propertyName === undefined) return schema
    const tags = shapes.map((shape) => this.#tagValues(shape, propertyName) ?? [])
    const mapping = Object.fromEntries(
      tags.flatMap((values, index) => values.map((value) => [value, choices[index].$ref])),
    )
    // Each choice has values of its own.
    if (Object.keys(mapping).length < tags.flat().length) return schema
    return { ...rest, oneOf: choices, discriminator: { propertyName, mapping } }
  }

  /** Returns the only values of a field that an object must have; null if it can have others. */
  #tagValues(shape: Schema | undefined, name: string): string[] | null {
    const { properties = {}, required = [] } = (shape ?? {}) as {
      properties?: Record<string, Schema>
      required?: string[]
    }
    const field = properties[name] ?? {}
    const { enum: values } = this.find(field) ?? field
    return required.includes(name) && Array.isArray(values) ? values : null
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

/** Lists the values of a union of constants. */
function unionOfConstants(schema: Schema): Schema {
  const { anyOf: choices, ...rest } = schema
  if (!Array.isArray(choices) || choices.length === 0) return schema
  const values = choices.map(({ enum: only }: Schema) =>
    Array.isArray(only) && only.length === 1 ? only[0] : undefined,
  )
  return values.includes(undefined) ? schema : { ...rest, type: 'string', enum: values }
}

/** Adds null to the types of a schema without a name that may also be null. */
function orNull(schema: Schema): Schema {
  const { anyOf: choices, ...rest } = schema
  if (!Array.isArray(choices) || choices.length !== 2) return schema
  const [given, other] = choices as [Schema, Schema]
  if (other.type !== 'null' || typeof given.type !== 'string') return schema
  // A list of values would need null among them, of which generators make a name.
  if (given.enum !== undefined || given.properties !== undefined) return schema
  return { ...given, ...rest, type: [given.type, 'null'] }
}

/**
 * Declares a constant as what generators make a usable type of: a boolean in words, a text as the only one of its values.
 */
function withoutConstant(schema: Schema): Schema {
  if (!('const' in schema)) return schema
  const { const: value, description, ...rest } = schema
  const words = typeof description === 'string' ? { description } : {}
  if (typeof value !== 'boolean') return { ...rest, ...words, enum: [value] }
  const always = `Always ${value}.`
  return {
    ...rest,
    description: words.description ? `${words.description} ${always}` : always,
    examples: [value],
  }
}

/** Declares the sizes of numbers. Without a format generators take too small ones. The server checks that items are unique. */
function sized(schema: Schema): Schema {
  const { uniqueItems: _, ...rest } = schema
  const types = [rest.type].flat()
  if (types.includes('number')) return { ...rest, format: 'double' }
  if (!types.includes('integer')) return rest
  const most = typeof rest.maximum === 'number' ? rest.maximum : Infinity
  return most >= INT32_END ? { ...rest, format: 'int64' } : rest
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
