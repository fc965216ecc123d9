import { NOT_BLANK } from './schema.ts'

/** The pattern of a text that the system takes as a C string. */
export const NO_NUL = '^[^\\u0000]*$'

/** What patterns ask for, in words. */
const PATTERNS: Readonly<Record<string, string>> = {
  [NO_NUL]: 'no NUL',
  [NOT_BLANK]: 'more than white space',
}

/** The parts of a TypeBox value error that a sentence is made from. */
interface ValueError {
  path: string
  message: string
  value: unknown
  schema: Record<string, unknown>
  /** Of a union: what each variant has against the value. */
  errors?: Iterable<ValueError>[]
}

/**
 * Says what is wrong with a request: the field, what was expected and what came instead.
 *
 * @param where `body`, `query` or `params`; `property` for a number in a query, which is told without its name
 * @param error the first mismatch; without one the whole is meant
 */
export function describeInvalid(where: string, error: unknown): string {
  const mismatch = error ? intoVariant(error as ValueError) : undefined
  if (!mismatch) return `The ${where} is not valid.`
  const field = mismatch.path.replace(/^\//, '').replaceAll('/', '.')
  const whole = where === 'property' ? 'A number in the query' : `The ${where}`
  const subject = field ? `"${field}" in the ${where}` : whole
  if (mismatch.message === 'Unexpected property') return `${subject} is not a known field.`
  if (mismatch.value === undefined) return `${subject} is missing: expected ${expectation(mismatch)}.`
  const got = isSecret(mismatch.schema) ? '' : `, got ${shown(mismatch.value)}`
  return `${subject}: expected ${expectation(mismatch)}${got}.`
}

/** Whether a value is one that never comes back, not even to whoever sent it wrongly. */
function isSecret({ writeOnly, anyOf }: Record<string, unknown>): boolean {
  return writeOnly === true || (Array.isArray(anyOf) && anyOf.some(isSecret))
}

/** What a schema asks for, in words. */
function expectation(mismatch: ValueError): string {
  const { message } = mismatch
  const [some, none] = Array.isArray(mismatch.schema.anyOf) ? mismatch.schema.anyOf : []
  if (none?.type === 'null') return `${expectation({ ...mismatch, schema: some })} or null`
  const schema = numberIn(mismatch.schema) ?? mismatch.schema
  const { enum: choices, type, minLength, maxLength, minimum, maximum, pattern } = schema
  if (Array.isArray(choices)) return `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const bounds = [
    minLength !== undefined ? `at least ${minLength} characters` : '',
    maxLength !== undefined ? `at most ${maxLength} characters` : '',
    minimum !== undefined ? `at least ${minimum}` : '',
    maximum !== undefined ? `at most ${maximum}` : '',
    typeof pattern === 'string' ? (PATTERNS[pattern] ?? `matching ${pattern}`) : '',
  ].filter(Boolean)
  if (typeof type !== 'string') return message.toLowerCase()
  const noun = { object: 'an object', array: 'an array', integer: 'a whole number' }[type] ?? `a ${type}`
  return bounds.length ? `${noun} of ${bounds.join(' and ')}` : noun
}

/** Of objects told apart by their `type`, what is wrong with the one that is meant, or with the `type`. */
function intoVariant(mismatch: ValueError): ValueError {
  const { anyOf, writeOnly } = mismatch.schema
  if (!Array.isArray(anyOf)) return mismatch
  const types = anyOf.map(({ properties }) => properties?.type?.const)
  if (types.some((type) => typeof type !== 'string')) return mismatch
  if (typeof mismatch.value !== 'object' || mismatch.value === null || Array.isArray(mismatch.value)) {
    return { ...mismatch, schema: { type: 'object', writeOnly } }
  }
  const { type } = mismatch.value as { type?: unknown }
  const variant = types.indexOf(type)
  const [first] = variant === -1 ? [] : (mismatch.errors?.[variant] ?? [])
  return first ?? { ...mismatch, path: `${mismatch.path}/type`, value: type, schema: { enum: types } }
}

/** A number in a query may also come as text: of the two the number is what is meant. */
function numberIn({ anyOf }: Record<string, unknown>): Record<string, unknown> | undefined {
  if (!Array.isArray(anyOf)) return undefined
  return anyOf.find(({ type }) => type === 'integer' || type === 'number')
}

/** A given value, short enough for a sentence. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}
