import type { Static, TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import {
  discriminator,
  entryCount,
  expectation,
  inWords,
  isSecret,
  type Schema,
  soleKey,
} from './expectation.ts'
import { nearest } from './nearest.ts'
import { brokenText, type JsonPath, shown, ValidationError, valueKindOf } from './validation-error.ts'

/** Raw errors that are looked at: a long list of wrong values is not read to its end. @bound reader */
const MOST_ERRORS = 64

/** Where a schema keeps the names of fields that a resource has and no update changes. */
const UNCHANGEABLE = Symbol('berth.unchangeable')

/** Marks fields of an update's schema as ones that exist and cannot be changed: the message says so. */
export const unchangeable = <Shape extends TSchema>(shape: Shape, fields: readonly string[]): Shape =>
  Object.assign(shape, { [UNCHANGEABLE]: fields })

/**
 * Checks values by a TypeBox schema, and says of one that does not fit what is wrong with it. The check is compiled when
 * it is first needed.
 */
export class Validator<Shape extends TSchema> {
  #check: TypeCheck<Shape> | undefined

  constructor(readonly shape: Shape) {}

  /** Reports whether a value fits. */
  fits(value: unknown): value is Static<Shape> {
    this.#check ??= TypeCompiler.Compile(this.shape)
    return this.#check.Check(value)
  }

  /**
   * Returns a value that fits.
   *
   * @param path where the value stands, in the errors
   * @throws ValidationError for the first mistake, with the others that were found
   */
  parse(value: unknown, path: JsonPath = []): Static<Shape> {
    if (this.fits(value)) return value
    throw mistakesIn(value, this.shape, path)
  }
}

/**
 * Returns a value that fits a schema. Unlike a Validator it compiles nothing: for what is checked once.
 *
 * @throws ValidationError for the first mistake, with the others that were found
 */
export function checked<Shape extends TSchema>(
  value: unknown,
  shape: Shape,
  path: JsonPath = [],
): Static<Shape> {
  if (Value.Check(shape, value)) return value
  throw mistakesIn(value, shape, path)
}

/** Finds the mistakes in a value that does not fit a schema. */
export function mistakesIn(value: unknown, shape: TSchema, path: JsonPath = []): ValidationError {
  const mistakes = [...explain(value, shape, path)]
  const [first, ...others] = mistakes
  return first?.with(others) ?? new ValidationError(path, `expected ${expectation(shape as Schema)}.`)
}

/** Yields one mistake for each path that has any. */
function* explain(value: unknown, shape: TSchema, path: JsonPath): Generator<ValidationError> {
  const seen = new Set<string>()
  let count = 0
  for (const error of Value.Errors(shape, value)) {
    count += 1
    if (count > MOST_ERRORS) return
    if (seen.has(error.path)) continue
    seen.add(error.path)
    yield* mistakeOf(error, [...path, ...pathOf(error.path, value)])
  }
}

function* mistakeOf(error: ValueError, path: JsonPath): Generator<ValidationError> {
  const { type, value } = error
  const schema = error.schema as Schema
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      yield new ValidationError(path, expectation(schema), 'missing')
      return
    case ValueErrorType.ObjectAdditionalProperties:
      yield unknownKey(path, error.schema)
      return
    case ValueErrorType.ArrayUniqueItems:
      yield repeated(path, value as unknown[])
      return
    case ValueErrorType.ArrayMinItems:
    case ValueErrorType.ArrayMaxItems:
      yield new ValidationError(
        path,
        `expected an array${entryCount(schema)}, got ${(value as unknown[]).length}.`,
      )
      return
    case ValueErrorType.ObjectMaxProperties:
      yield new ValidationError(
        path,
        `expected an object${entryCount(schema)}, got ${Object.keys(value as object).length}.`,
      )
      return
    case ValueErrorType.Union:
      yield* inVariant(value, error.schema, path)
      return
    default:
      yield wrong(value, schema, path)
  }
}

/** Returns the mistake of a value that a schema does not allow. Does not show a value that may contain a secret. */
export function wrong(value: unknown, schema: Schema, path: JsonPath): ValidationError {
  if (typeof value === 'string' && !value.isWellFormed()) return brokenText(path)
  const expected = `expected ${expectation(schema)}`
  if (!isSecret(schema))
    return new ValidationError(path, `${expected}, got ${shown(value)}.${meant(value, schema)}`)
  // Nothing but its kind may be said of a secret, and of text in place of text nothing at all.
  const isText = typeof value === 'string' && expectation(schema).startsWith('a string')
  return new ValidationError(
    path,
    `${expected}${isText || isHidden(schema, value) ? '' : `, got ${valueKindOf(value)}`}.`,
  )
}

const isHidden = ({ type, anyOf }: Schema, value: unknown): boolean =>
  typeof value === 'string' && type !== 'object' && anyOf === undefined

function unknownKey(path: JsonPath, schema: TSchema): ValidationError {
  const { properties = {}, propertyNames } = schema as Schema
  const key = String(path.at(-1))
  if (propertyNames) return new ValidationError(path, `expected ${expectation(propertyNames)}.`, 'key')
  if ((schema as { [UNCHANGEABLE]?: readonly string[] })[UNCHANGEABLE]?.includes(key)) {
    return new ValidationError(path, `it cannot be changed${changeable(Object.keys(properties))}`, 'key')
  }
  return unknownField(path, Object.keys(properties))
}

const changeable = (names: readonly string[]): string => `; ${names.join(' and ')} can.`

/** Names that a message about an unknown field lists. @bound reader */
const MOST_NAMES = 16

/** Refuses a field that is not known. @param known the names of those that are */
export function unknownField(path: JsonPath, known: readonly string[]): ValidationError {
  const near = nearest(String(path.at(-1)), known)
  const hint = near.length > 0 ? ` Did you mean ${inWords(near)}?` : ''
  const names = known.length > 0 && known.length <= MOST_NAMES ? `; known are ${known.join(', ')}` : ''
  return new ValidationError(path, `${names}.${hint}`, 'unknown')
}

/** Suggests the allowed texts that somebody may have meant by another one. */
function meant(value: unknown, { enum: choices }: Schema): string {
  if (typeof value !== 'string' || choices === undefined) return ''
  const near = nearest(value, choices.map(String))
  return near.length > 0 ? ` Did you mean ${inWords(near)}?` : ''
}

function repeated(path: JsonPath, values: readonly unknown[]): ValidationError {
  const index = values.findIndex((value, at) => values.indexOf(value) < at)
  return new ValidationError([...path, index], 'it stands in this list already.')
}

/** Of several variants one is meant: that of the value's type, and of objects the one that its keys tell. */
function* inVariant(value: unknown, union: TSchema, path: JsonPath): Generator<ValidationError> {
  const all = (union.anyOf ?? []) as (TSchema & Schema)[]
  const objects = all.filter(({ type }) => type === 'object')
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isObject && objects.length > 0) yield* inObject(value as Record<string, unknown>, objects, union, path)
  else {
    const [only, ...more] = all.filter(({ type }) => type === kindName(value))
    if (only && more.length === 0 && !union.title) yield* explain(value, withSecrecy(only, union), path)
    else yield wrong(value, union as Schema, path)
  }
}

function* inObject(
  value: Record<string, unknown>,
  variants: (TSchema & Schema)[],
  union: TSchema,
  path: JsonPath,
): Generator<ValidationError> {
  const [only] = variants
  if (only && variants.length === 1) {
    yield* explain(value, only, path)
    return
  }
  const name = discriminator(variants)
  if (name !== undefined) {
    const named = variants.find(({ properties }) => properties?.[name]?.const === value[name])
    if (named) yield* explain(value, named, path)
    else yield wrongName(value, name, variants, path)
    return
  }
  const keys = variants.flatMap((variant) => soleKey(variant) ?? [])
  const present = keys.filter((key) => Object.hasOwn(value, key))
  const foreign = Object.keys(value).find((key) => !keys.includes(key))
  const [key, other] = present
  if (key !== undefined && other === undefined)
    yield* explain(value, variants[keys.indexOf(key)] as TSchema, path)
  else if (key !== undefined)
    yield new ValidationError(path, `expected one of ${key} and ${other}, not both.`)
  else if (foreign !== undefined) yield unknownField([...path, foreign], keys)
  else yield wrong(value, union as Schema, path)
}

function wrongName(
  value: Record<string, unknown>,
  name: string,
  variants: readonly Schema[],
  path: JsonPath,
): ValidationError {
  const choices = { enum: variants.map(({ properties }) => properties?.[name]?.const) }
  if (!Object.hasOwn(value, name))
    return new ValidationError([...path, name], expectation(choices), 'missing')
  return wrong(value[name], choices, [...path, name])
}

/** A variant of a secret union is secret too. */
const withSecrecy = (variant: TSchema, { writeOnly }: TSchema): TSchema =>
  writeOnly ? { ...variant, writeOnly } : variant

const kindName = (value: unknown): string => {
  if (Array.isArray(value)) return 'array'
  if (value === null) return 'null'
  return typeof value === 'object' ? 'object' : typeof value
}

/** Reads a JSON pointer (RFC 6901) as keys and indexes of a value. */
function pathOf(pointer: string, value: unknown): JsonPath {
  let at = value
  return pointer
    .split('/')
    .slice(1)
    .map((escaped) => {
      const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~')
      const part = Array.isArray(at) ? Number(key) : key
      at = (at as Record<string | number, unknown> | null | undefined)?.[part]
      return part
    })
}
