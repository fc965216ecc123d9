import {
  Kind,
  OptionalKind,
  type Static,
  type TOptional,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { badRequest } from '../errors.ts'
import { isKeptNumber } from '../runtime/validation/json-faults.ts'
import { Validator } from '../runtime/validation/validate.ts'
import { ValidationError } from '../runtime/validation/validation-error.ts'

/** Key of the schema in a checked part of a request. */
const SHAPE = Symbol('berth.shape')

/**
 * Validates a body in the form in which Elysia accepts validators of other libraries (Standard Schema 1). It creates
 * the error itself, which gives messages berth's wording.
 */
interface CheckedBody<Output> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'berth'
    readonly validate: (value: unknown) => { readonly value: Output }
    readonly types?: { readonly input: Output; readonly output: Output }
  }
  readonly [SHAPE]: TSchema
}

/** The parsed body; undefined if an optional one is missing. */
type Output<Shape extends TSchema> = Static<Shape> | (Shape extends TOptional<TSchema> ? undefined : never)

/** Returns the schema of a checked part; undefined for anything else. */
export const shapeOf = (part: unknown): TSchema | undefined =>
  (part as { [SHAPE]?: TSchema } | undefined)?.[SHAPE]

/** Reports whether the body may be missing. */
export const isOptionalBody = (shape: TSchema): boolean => OptionalKind in shape

/**
 * Returns the validator of a request's body for Elysia.
 *
 * @param shape a missing body is parsed as undefined if it is optional
 */
export function checkedBody<Shape extends TSchema>(shape: Shape): CheckedBody<Output<Shape>> {
  const validator = new Validator(shape)
  const optional = isOptionalBody(shape)
  const read = (value: unknown): Output<Shape> => {
    if (value !== null && value !== undefined)
      return inPart('body', () => validator.parse(value)) as Output<Shape>
    if (optional) return undefined as Output<Shape>
    throw badRequest('The body is missing: expected a JSON object.')
  }
  return {
    '~standard': { version: 1, vendor: 'berth', validate: (value) => ({ value: read(value) }) },
    [SHAPE]: shape,
  }
}

/** Matches a number in a query. */
const NUMBER = /^-?\d+(?:\.\d+)?$/

/** The kind of TypeBox schema that Elysia sees for a checked query or path. */
const TEXTS = 'berth.texts'

/** Key of the function that parses the texts, in such a schema. */
const READ = Symbol('berth.read')

/** A query or the parameters of a path with their validator, which Elysia runs as a TypeBox schema. */
export type CheckedTexts<Output> = TUnsafe<Output> & { readonly [SHAPE]: TSchema }

/**
 * Returns the validator of a request's query. All values of a query are text; those of numeric fields are parsed as
 * numbers. It is a TypeBox schema, because with validators of other libraries Elysia splits values at commas and
 * parses JSON in them.
 */
export const checkedQuery = <Shape extends TSchema>(shape: Shape) => checkedTexts('query', shape)

/** Returns the validator of the parameters of a request's path, as that of a query. */
export const checkedParams = <Shape extends TSchema>(shape: Shape) => checkedTexts('path', shape)

function checkedTexts<Shape extends TSchema>(
  part: 'query' | 'path',
  shape: Shape,
): CheckedTexts<Static<Shape>> {
  const validator = new Validator(shape)
  const numeric = Object.entries(shape.properties as Record<string, TSchema>)
    .filter(([, { type }]) => type === 'integer' || type === 'number')
    .map(([name]) => name)
  const read = (texts: Record<string, unknown>): void => {
    for (const name of numeric) {
      const text = texts[name]
      if (typeof text === 'string' && NUMBER.test(text) && isKeptNumber(text)) texts[name] = Number(text)
    }
    inPart(part, () => validator.parse(texts))
  }
  if (!TypeRegistry.Has(TEXTS)) {
    TypeRegistry.Set<{ [READ]: typeof read }>(TEXTS, (schema, texts) => {
      schema[READ](texts as Record<string, unknown>)
      return true
    })
  }
  return Object.assign(Type.Unsafe<Static<Shape>>({ [Kind]: TEXTS }), { [READ]: read, [SHAPE]: shape })
}

/**
 * Runs a function that parses a part of a request.
 *
 * @throws BerthError 400 in place of a ValidationError
 */
export function inPart<T>(part: 'body' | 'query' | 'path', read: () => T): T {
  try {
    return read()
  } catch (error) {
    return refused(part)(error)
  }
}

/** Returns a handler that throws a BerthError 400 for a ValidationError, and any other error unchanged. */
export const refused =
  (part: 'body' | 'query' | 'path') =>
  (error: unknown): never => {
    throw error instanceof ValidationError ? badRequest(error.describe(part)) : error
  }
