import type { Schema } from '../openapi/model.ts'

/** The shape of a value, as a person reads it. */
export interface Shape {
  /** Words: `string`, `list of Server`, `integer or null`. */
  readonly type: string
  /** Limits of the value, a phrase each. */
  readonly limits: readonly string[]
  /** The only values that it may have; empty for any. */
  readonly values: readonly string[]
  /** The fields of the object, or of each object of a list. */
  readonly fields: readonly Field[]
  /** The shapes of which it has one, if these are objects with fields of their own. */
  readonly alternatives: readonly Shape[]
}

/** A field of an object. */
export interface Field {
  readonly name: string
  readonly required: boolean
  readonly description: string
  readonly shape: Shape
}

/** The keywords of JSON Schema that shapes are made of. */
interface Keywords {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  default?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  propertyNames?: { pattern?: string }
  description?: string
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  contentMediaType?: string
  writeOnly?: boolean
}

const NO_SHAPE: Shape = { type: 'anything', limits: [], values: [], fields: [], alternatives: [] }

/** Matches any text that is not blank. */
const NOT_BLANK = '\\S'

/** Describes schemas of a document. */
export class Shapes {
  /**
   * @param schemas the shared schemas by name, for references
   */
  constructor(readonly schemas: Readonly<Record<string, Schema>>) {}

  /** Describes a schema with all that is nested in it. A shape inside itself has only its name. */
  of(schema: Schema): Shape {
    return this.#shape(schema, [])
  }

  #shape(schema: Schema, outer: readonly string[]): Shape {
    const keywords = schema as Keywords
    const { $ref, anyOf, oneOf = anyOf } = keywords
    if ($ref !== undefined) {
      const name = $ref.split('/').at(-1) ?? ''
      if (outer.includes(name)) return { ...NO_SHAPE, type: name }
      return this.#shape(this.schemas[name] ?? {}, [...outer, name])
    }
    if (oneOf) return this.#union(oneOf, outer)
    if (keywords.items) {
      const item = this.#shape(keywords.items, outer)
      return {
        ...item,
        type: `list of ${plural(item.type)}`,
        limits: [...limitsOf(keywords), ...item.limits],
      }
    }
    const fields = this.#fields(keywords, outer)
    const { additionalProperties: rest } = keywords
    if (fields.length === 0 && typeof rest === 'object') {
      const value = this.#shape(rest, outer)
      return { ...value, type: `object of ${plural(value.type)} by name`, limits: limitsOf(keywords) }
    }
    return {
      type: typeOf(keywords),
      limits: limitsOf(keywords),
      values: valuesOf(keywords),
      fields,
      alternatives: [],
    }
  }

  #fields({ properties = {}, required = [] }: Keywords, outer: readonly string[]): Field[] {
    return Object.entries(properties).map(([name, schema]) => ({
      name,
      required: required.includes(name),
      description: this.#descriptionOf(schema),
      shape: this.#shape(schema, outer),
    }))
  }

  /** Returns the description of a field, else that of the shape that it refers to. */
  #descriptionOf(schema: Schema): string {
    const { description, $ref } = schema as Keywords
    if (description !== undefined) return description
    const shared = this.schemas[$ref?.split('/').at(-1) ?? ''] as Keywords | undefined
    return shared?.description ?? ''
  }

  #union(choices: readonly Schema[], outer: readonly string[]): Shape {
    const shapes = choices.map((choice) => this.#shape(choice, outer))
    const type = [...new Set(shapes.map((shape) => shape.type))].join(' or ')
    const withFields = shapes.filter(({ fields, alternatives }) => fields.length + alternatives.length > 0)
    const [only] = withFields
    if (only && withFields.length === 1) return { ...only, type }
    return {
      type,
      limits: shapes.flatMap(({ limits }) => limits),
      values: shapes.flatMap(({ values }) => values),
      fields: [],
      alternatives: withFields,
    }
  }
}

/** Returns a type for several values: `list of strings`. Names of shapes stay. */
const plural = (type: string): string => (/^[a-z]+$/.test(type) ? `${type}s` : type)

function typeOf({ type, enum: values, format, contentMediaType }: Keywords): string {
  if (contentMediaType !== undefined) return 'bytes'
  const names = type === undefined ? [typeof values?.[0]] : [type].flat()
  const known = names.filter((name) => name !== 'undefined')
  if (known.length === 0) return NO_SHAPE.type
  return known.map((name) => (name === 'string' && format === 'date-time' ? 'time' : name)).join(' or ')
}

const valuesOf = ({ enum: values = [] }: Keywords): string[] => values.map((value) => JSON.stringify(value))

function limitsOf(keywords: Keywords): string[] {
  const { pattern, propertyNames, format, writeOnly, default: usual } = keywords
  const names = propertyNames?.pattern
  return [
    between(keywords.minLength, keywords.maxLength, 'characters'),
    between(keywords.minimum, keywords.maximum, ''),
    between(keywords.minItems, keywords.maxItems, 'items'),
    pattern === undefined ? '' : pattern === NOT_BLANK ? 'not blank' : `matches ${pattern}`,
    names === undefined ? '' : `names match ${names}`,
    format === 'uri' ? 'a URL' : '',
    usual === undefined ? '' : `default ${JSON.stringify(usual)}`,
    writeOnly ? 'never in a response' : '',
  ].filter(Boolean)
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  const counted = (count: number): string =>
    `${count.toLocaleString('en')} ${unit}`.trim().replace(/^(1 \w+)s$/, '$1')
  if (least !== undefined && most !== undefined) return `${least.toLocaleString('en')} to ${counted(most)}`
  if (least !== undefined) return `at least ${counted(least)}`
  return most === undefined ? '' : `at most ${counted(most)}`
}
