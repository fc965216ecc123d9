import type { Schema } from '../../contract/openapi/model.ts'

const REFERENCE = '#/components/schemas/'

/**
 * A schema of the API's document with every reference replaced by what it names, so that it stands alone: many hosts
 * hand a tool's schema to a model as it is, and few resolve references (JSON Schema 2020-12).
 *
 * @throws Error where a shape contains itself, which cannot be written out
 */
export function standingAlone(schema: Schema, shapes: Readonly<Record<string, Schema>>): Schema {
  return written(schema, shapes, []) as Schema
}

function written(
  value: unknown,
  shapes: Readonly<Record<string, Schema>>,
  within: readonly string[],
): unknown {
  if (Array.isArray(value)) return value.map((one) => written(one, shapes, within))
  if (typeof value !== 'object' || value === null) return value
  const { $ref: reference, ...rest } = value as Schema
  if (typeof reference !== 'string') {
    return Object.fromEntries(Object.entries(rest).map(([name, one]) => [name, written(one, shapes, within)]))
  }
  const name = reference.slice(REFERENCE.length)
  const shape = shapes[name]
  if (shape === undefined) throw new Error(`${reference} names no shape of the document.`)
  if (within.includes(name)) throw new Error(`The shape "${name}" contains itself.`)
  return { ...(written(shape, shapes, [...within, name]) as Schema), ...rest }
}
