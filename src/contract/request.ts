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

/** The kind of TypeBox schema that Elysia sees for a checked query. */
const QUERY = 'berth.query'

/** Key of the function that parses the query, in such a schema. */
const READ = Symbol('berth.read')

/** A query with its validator, which Elysia runs as a TypeBox schema. */
export type CheckedQuery<Output> = TUnsafe<Output> & { readonly [SHAPE]: TSchema }

/**
 * Returns the validator of a request's query. All values of a query are text; those of numeric fields are parsed as
 * numbers. It is a TypeBox schema, because with validators of other libraries Elysia splits values at commas and
 * parses JSON in them.
 */
export function checkedQuery<Shape extends TSchema>(shape: Shape): CheckedQuery<Static<Shape>> {
  const validator = new Validator(shape)
  const numeric = Object.entries(shape.properties as Record<string, TSchema>)
    .filter(([, { type }]) => type === 'integer' || type === 'number')
    .map(([name]) => name)
  const read = (query: Record<string, unknown>): void => {
    for (const name of numeric) {
      const text = query[name]
      if (typeof text === 'string' && NUMBER.test(text) && isKeptNumber(text)) query[name] = Number(text)
    }
    inPart('query', () => validator.parse(query))
  }
  if (!TypeRegistry.Has(QUERY)) {
    TypeRegistry.Set<{ [READ]: typeof read }>(QUERY, (schema, query) => {
      schema[READ](query as Record<string, unknown>)
      return true
    })
  }
  return Object.assign(Type.Unsafe<Static<Shape>>({ [Kind]: QUERY }), { [READ]: read, [SHAPE]: shape })
}

/**
 * Runs a function that parses a part of a request.
 *
 * @throws BerthError 400 in place of a ValidationError
 */
export function inPart<T>(part: 'body' | 'query', read: () => T): T {
  try {
    return read()
  } catch (error) {
    return refused(part)(error)
  }
}

/** Returns a handler that throws a BerthError 400 for a ValidationError, and any other error unchanged. */
export const refused =
  (part: 'body' | 'query') =>
  (error: unknown): never => {
    throw error instanceof ValidationError ? badRequest(error.describe(part)) : error
  }
