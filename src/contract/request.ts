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
import { Validator } from '../runtime/validation/validate.ts'
import { ValidationError } from '../runtime/validation/validation-error.ts'

/** Where a checked part of a request keeps its schema. */
const SHAPE = Symbol('berth.shape')

/**
 * The check of a body, in the form in which Elysia accepts validators of other libraries (Standard Schema 1). It makes
 * the message itself, so that a refusal is in berth's words.
 */
export interface CheckedBody<Output> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'berth'
    readonly validate: (value: unknown) => { readonly value: Output }
    readonly types?: { readonly input: Output; readonly output: Output }
  }
  readonly [SHAPE]: TSchema
}

/** What a body is read as: one that may be left out may be undefined. */
type Output<Shape extends TSchema> = Static<Shape> | (Shape extends TOptional<TSchema> ? undefined : never)

/** The schema of a checked part; undefined for anything else. */
export const shapeOf = (part: unknown): TSchema | undefined =>
  (part as { [SHAPE]?: TSchema } | undefined)?.[SHAPE]

/** Whether a request may come without this body. */
export const isOptionalBody = (shape: TSchema): boolean => OptionalKind in shape

/** Makes the check of a request's body for Elysia. @param shape if it is optional, a missing body is read as undefined */
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

/** A number as it stands in a query. */
const NUMBER = /^-?\d+(?:\.\d+)?$/

/** The kind of TypeBox schema that a checked query is to Elysia. */
const QUERY = 'berth.query'

/** Where such a schema keeps what reads the query. */
const READ = Symbol('berth.read')

/** A query with the check of it, which Elysia runs as that of a TypeBox schema. */
export type CheckedQuery<Output> = TUnsafe<Output> & { readonly [SHAPE]: TSchema }

/**
 * Checks a request's query, in which all values come as text: those of numeric fields are read as numbers. Elysia takes
 * it as a schema of TypeBox: of validators of other libraries it would split values at commas and read JSON in them.
 */
export function checkedQuery<Shape extends TSchema>(shape: Shape): CheckedQuery<Static<Shape>> {
  const validator = new Validator(shape)
  const numeric = Object.entries(shape.properties as Record<string, TSchema>)
    .filter(([, { type }]) => type === 'integer' || type === 'number')
    .map(([name]) => name)
  const read = (query: Record<string, unknown>): void => {
    for (const name of numeric) {
      const text = query[name]
      if (typeof text === 'string' && NUMBER.test(text)) query[name] = Number(text)
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
 * Does what reads a part of a request.
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

/** Makes what refuses a part of a request: it throws a BerthError 400 for a ValidationError, anything else as it is. */
export const refused =
  (part: 'body' | 'query') =>
  (error: unknown): never => {
    throw error instanceof ValidationError ? badRequest(error.describe(part)) : error
  }
