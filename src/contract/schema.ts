import {
  FormatRegistry,
  type IntegerOptions,
  Kind,
  type TSchema,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { t } from 'elysia'
import { NOT_BLANK } from './expectation.ts'

export { NO_NUL, NOT_BLANK } from './expectation.ts'

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

/**
 * A shape that documents show and no check is made of: what reads the value tells a caller more exactly what it
 * expected than a validator does.
 */
export const documented = (shape: TSchema) => Type.Unsafe<unknown>({ ...shape, [Kind]: 'Unknown' })
