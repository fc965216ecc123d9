import {
  FormatRegistry,
  type IntegerOptions,
  Kind,
  type TSchema,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { t } from 'elysia'
import { isBase64 } from '../runtime/decode.ts'
import { DECIMALS, NOT_BLANK } from '../runtime/validation/expectation.ts'

export { NO_NUL, NOT_BLANK } from '../runtime/validation/expectation.ts'

/**
 * Returns the schema of one of several texts: Elysia's `UnionEnum` without its default value, which would silently
 * replace a missing field. Documents name it by its `$id`, which one of several values needs.
 */
export function oneOf<const Values extends [string, ...string[]]>(
  values: Values,
  options: { $id?: string; description?: string } = {},
) {
  const schema = t.UnionEnum(values, options)
  Reflect.deleteProperty(schema, 'default')
  return schema
}

/** Key of the description of a use of a named schema. Documents show it beside the reference to the schema. */
export const USE = 'x-use'

/** Returns a named schema with a description of what it is for in one place, in addition to its own. */
export const used = <Shape extends TSchema>(shape: Shape, description: string): Shape => ({
  ...shape,
  [USE]: description,
})

/** Returns the schema of a yes or no in a query, as the texts `true` and `false`. Documents declare a boolean. */
export const flagSchema = (description?: string) =>
  oneOf(['true', 'false'], description === undefined ? {} : { description })

/**
 * Matches a time in UTC in the form of `toIso` (RFC 3339). Years after 9999 have a sign and six digits (ECMA-262,
 * section 21.4.1.32).
 */
const MOMENT = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

// Only responses contain times, several in each. Elysia's own check takes ten times as long and accepts other forms.
FormatRegistry.Set('date-time', (value) => MOMENT.test(value))

/** Bounds of a text, in characters. */
interface TextBounds {
  minLength?: number
  maxLength?: number
  pattern?: typeof NOT_BLANK
  /** Shown in documents. The code that uses the text checks it. */
  format?: 'uri'
}

TypeRegistry.Set<TSchema & TextBounds>('Text', ({ minLength = 0, maxLength = Infinity, pattern }, value) => {
  if (typeof value !== 'string' || !value.isWellFormed()) return false
  if (pattern === NOT_BLANK && value.trim() === '') return false
  // A character has one or two UTF-16 units, so longer texts need no counting.
  if (value.length > 2 * maxLength) return false
  const length = Array.from(value).length
  return length >= minLength && length <= maxLength
})

/**
 * Returns the schema of a text with a limited number of Unicode code points (JSON Schema 2020-12, validation, section
 * 6.3). Elysia's own `String` counts an emoji twice. Refuses lone surrogates.
 */
export const text = (options: TextBounds & { description?: string }) =>
  Type.Unsafe<string>({ ...options, type: 'string', [Kind]: 'Text' })

/** Returns the schema of a whole number. Elysia's own `Integer` also accepts one written as text. */
export const integer = (options: IntegerOptions = {}) => Type.Integer(options)

/**
 * Returns keywords for documents: objects have not all fields of any of these groups. Validation has none for this, so
 * the code that uses the object checks it.
 */
export function notTogether(...groups: readonly (readonly string[])[]) {
  const [only, ...more] = groups.map(withFields)
  return { not: more.length === 0 ? only : { anyOf: [only, ...more] } }
}

/** Returns the schema of objects with all of these fields. */
export const withFields = (names: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, {}])),
  required: [...names],
})

/** Sets the words that follow "expected" in error messages. Documents do not show them. */
export const worded = <Shape extends TSchema>(shape: Shape, words: string): Shape => ({
  ...shape,
  title: words,
})

/** Returns the schema of a number with at most three decimals, such as credits. */
export const amount = (options: { minimum: number; maximum: number; description?: string }) =>
  Type.Unsafe<number>({ ...options, type: 'number', [Kind]: 'Amount', [DECIMALS]: 3 })

/**
 * Returns the schema of such a number in a request. Documents declare the decimals of these alone: many validators divide
 * binary fractions, and would refuse numbers that berth itself has responded with.
 */
export const givenAmount = (options: Parameters<typeof amount>[0]) =>
  ({ ...amount(options), multipleOf: 0.001 }) as ReturnType<typeof amount>

TypeRegistry.Set<TSchema & { minimum: number; maximum: number }>('Amount', ({ minimum, maximum }, value) => {
  if (typeof value !== 'number' || value < minimum || value > maximum) return false
  // Tolerates the rounding errors of binary fractions.
  const thousandths = value * 1_000
  return Math.abs(thousandths - Math.round(thousandths)) < 1e-6
})

/**
 * The keywords by which documents declare bytes as base64 (RFC 4648, section 4). The pattern takes no groups of four
 * characters, over which engines go back, or out of memory, in a text of megabytes.
 */
export const BASE64 = {
  format: 'byte',
  contentEncoding: 'base64',
  pattern: '^[A-Za-z0-9+/]*={0,2}$',
} as const

/** What such a text is, in words that follow "expected". */
export const BASE64_WORDS = 'base64 with its padding and without line ends (RFC 4648, 4)'

/** Returns the schema of bytes as base64. */
export const base64 = (options: { description: string }) =>
  Type.Unsafe<string>({ ...options, ...BASE64, type: 'string', title: BASE64_WORDS, [Kind]: 'Base64' })

TypeRegistry.Set('Base64', (_, value) => typeof value === 'string' && isBase64(value))

/** Returns the schema of one of several texts, in any case. */
export const inAnyCase = (values: readonly string[], options: { $id?: string; description?: string } = {}) =>
  Type.Unsafe<string>({ ...options, type: 'string', enum: values, [Kind]: 'InAnyCase' })

TypeRegistry.Set<{ enum: readonly string[] }>(
  'InAnyCase',
  ({ enum: values }, value) => typeof value === 'string' && values.includes(value.toUpperCase()),
)

/**
 * Most variables in one object, more than any program has. Each adds to the cost of masking every log.
 * @bound client
 */
export const MAX_VARIABLES = 1_000

/**
 * Returns the schema of environment variables by name. Names must be valid in every shell (POSIX.1-2024, XBD section
 * 8.1).
 */
export const variables = <Value extends TSchema>(
  value: Value,
  options: { description: string; writeOnly?: boolean },
) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), value, {
    additionalProperties: false,
    maxProperties: MAX_VARIABLES,
    propertyNames: { title: 'a name of letters, digits and "_" that does not begin with a digit' },
    ...options,
  })
