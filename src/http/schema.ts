import { type IntegerOptions, Type } from '@sinclair/typebox'
import { t } from 'elysia'

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

/** A whole number. Elysia's own `Integer` would also take one written as text. */
export const integer = (options: IntegerOptions = {}) => Type.Integer(options)
