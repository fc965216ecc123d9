import {
  FormatRegistry,
  type IntegerOptions,
  Kind,
  type TSchema,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { t } from 'elysia'
import { DECIMALS, NOT_BLANK } from '../runtime/validation/expectation.ts'

export { NO_NUL, NOT_BLANK } from '../runtime/validation/expectation.ts'

/**
 * One of several texts. Elysia's `UnionEnum` without its default, which would stand in silently for a
 * field that the caller left out.
 */
export function oneOf<const Values extends [string, ...string[]]>(
  values: Values,
  options: { description?: string } = {},
) {
  const schema = t.UnionEnum(values, options)
  Reflect.deleteProperty(schema, 'default')
  return schema
}

/** A moment in UTC as `toIso` writes it (RFC 3339); years beyond 9999 have a sign and six digits (ECMA-262, 21.4.1.32). */
const MOMENT = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

// Only responses have moments, each of them several. Elysia's own check takes ten times as long, and other forms too.
FormatRegistry.Set('date-time', (value) => MOMENT.test(value))

/** Bounds of a text, in characters. */
interface TextBounds {
  minLength?: number
  maxLength?: number
  pattern?: typeof NOT_BLANK
  /** Shown in documents; what reads the text checks it. */
  format?: 'uri'
}

TypeRegistry.Set<TSchema & TextBounds>('Text', ({ minLength = 0, maxLength = Infinity, pattern }, value) => {
  if (typeof value !== 'string' || !value.isWellFormed()) return false
  if (pattern === NOT_BLANK && value.trim() === '') return false
  // Each character is one or two units: most texts need no counting.
  if (value.length > 2 * maxLength) return false
  const length = Array.from(value).length
  return length >= minLength && length <= maxLength
})

/**
 * A text of so many characters, which are Unicode code points as JSON Schema has it (2020-12,
 * validation, 6.3). Elysia's own `String` would count an emoji twice. Half a surrogate pair is refused.
 */
export const text = (options: TextBounds & { description?: string }) =>
  Type.Unsafe<string>({ ...options, type: 'string', [Kind]: 'Text' })

/** A whole number. Elysia's own `Integer` would also take one written as text. */
export const integer = (options: IntegerOptions = {}) => Type.Integer(options)

/** Says what a schema asks for in words of its own, which follow "expected". Documents do not show them. */
export const worded = <Shape extends TSchema>(shape: Shape, words: string): Shape => ({
  ...shape,
  title: words,
})

/** A number of at most three decimals, as credits are. */
export const amount = (options: { minimum: number; maximum: number; description?: string }) =>
  Type.Unsafe<number>({ ...options, type: 'number', [Kind]: 'Amount', [DECIMALS]: 3 })

TypeRegistry.Set<TSchema & { minimum: number; maximum: number }>('Amount', ({ minimum, maximum }, value) => {
  if (typeof value !== 'number' || value < minimum || value > maximum) return false
  // Sums of binary fractions are a little off.
  const thousandths = value * 1_000
  return Math.abs(thousandths - Math.round(thousandths)) < 1e-6
})

/** One of several texts, in any case. */
export const inAnyCase = (values: readonly string[], options: { description?: string } = {}) =>
  Type.Unsafe<string>({ ...options, type: 'string', enum: values, [Kind]: 'InAnyCase' })

TypeRegistry.Set<{ enum: readonly string[] }>(
  'InAnyCase',
  ({ enum: values }, value) => typeof value === 'string' && values.includes(value.toUpperCase()),
)

/** Environment variables by name: their names are those that every shell takes (POSIX, 8.1). */
export const variables = <Value extends TSchema>(
  value: Value,
  options: { description: string; writeOnly?: boolean },
) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), value, {
    additionalProperties: false,
    propertyNames: { title: 'a name of letters, digits and "_" that does not begin with a digit' },
    ...options,
  })
