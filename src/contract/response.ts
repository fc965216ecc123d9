import { Kind, type TSchema, Type, TypeRegistry } from '@sinclair/typebox'
import { getSchemaValidator, ValidationError } from 'elysia'

/** The kind of TypeBox schema that Elysia sees for a checked response. */
const RESPONSE = 'berth.response'

/** Key of the function that checks the response, in such a schema. */
const CHECK = Symbol('berth.check')

/** Key of the schema in a checked response. */
const SHAPE = Symbol('berth.response.shape')

/** Responses that are checked by walking through the schema. The check is compiled when there are more. */
const WALKED = 20

type Check = (value: unknown) => boolean

/** A response's schema with its check, which Elysia runs as a TypeBox schema. */
interface CheckedResponse extends TSchema {
  readonly [CHECK]: Check
  readonly [SHAPE]: TSchema
}

/** Returns the schema of a checked response; anything else unchanged. */
export const responseShapeOf = (response: TSchema): TSchema =>
  (response as Partial<CheckedResponse>)[SHAPE] ?? response

/**
 * Returns a response's schema for Elysia. Its check is made at the first use, and compiled when it has been used a while.
 * Elysia compiles every schema before its first use, which takes a start milliseconds.
 */
export function checkedResponse(shape: TSchema): CheckedResponse {
  let uses = 0
  let check: Check | null = null
  const checkAndCount: Check = (value) => {
    uses += 1
    if (uses === WALKED) check = null
    check ??= checkOf(shape, uses < WALKED)
    return check(value)
  }
  if (!TypeRegistry.Has(RESPONSE)) {
    TypeRegistry.Set<CheckedResponse>(RESPONSE, (schema, value) => schema[CHECK](value))
  }
  return Object.assign(Type.Unsafe({ [Kind]: RESPONSE }), { [CHECK]: checkAndCount, [SHAPE]: shape })
}

/**
 * Returns the check that Elysia makes of a response's schema, which admits no other fields.
 *
 * @param walks whether each check walks through the schema, instead of a compiled function
 */
function checkOf(shape: TSchema, walks: boolean): Check {
  // A copy: Elysia closes the schema that it is given, which must not affect documents.
  const validator = getSchemaValidator(
    { ...shape },
    {
      dynamic: walks,
      normalize: false,
      additionalProperties: false,
    },
  )
  return (value) => {
    if (validator.Check(value)) return true
    throw new ValidationError('response', validator, value)
  }
}
