/** Where the schema of a number keeps how many decimals it may have. */
export const DECIMALS = Symbol('berth.decimals')

/** The keywords of JSON Schema that validation looks at, as TypeBox writes them. */
export interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly [DECIMALS]?: number
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly maxProperties?: number
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: unknown
  /** Its title says what the keys are, in words that follow "expected". */
  readonly propertyNames?: Schema
  /** What the value is, in words that follow "expected". */
  readonly title?: string
  /** The value is shown to nobody, not even in a message about it. */
  readonly writeOnly?: boolean
}

/** The pattern of a text that says something: more than white space. */
export const NOT_BLANK = '\\S'

/** The pattern of a text that the system takes as a C string. */
export const NO_NUL = '^[^\\u0000]*$'

/** What patterns ask for, in words that follow "a string". */
const PATTERNS: Readonly<Record<string, string>> = {
  [NO_NUL]: 'without NUL',
  [NOT_BLANK]: 'that is not blank',
}

/** Choices that are listed at most. @bound reader */
const MOST_CHOICES = 20

/** Describes the values that a schema allows, in words that follow "expected". */
export function expectation(schema: Schema): string {
  const { title, anyOf, type } = schema
  if (title) return title
  if (anyOf) return alternatives(anyOf)
  if ('const' in schema) return typeof schema.const === 'string' ? `"${schema.const}"` : `${schema.const}`
  if (schema.enum) {
    const listed = schema.enum.slice(0, MOST_CHOICES).map(String)
    return `one of ${[...listed, ...(schema.enum.length > MOST_CHOICES ? ['…'] : [])].join(', ')}`
  }
  switch (type) {
    case 'string':
      return textWords(schema)
    case 'integer':
      return `a whole number${range(schema)}`
    case 'number':
      return `a number${decimals(schema)}${range(schema)}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return `an array${entryCount(schema)}`
    case 'object':
      return objectWords(schema)
    case 'null':
      return 'null'
    default:
      return 'another value'
  }
}

function textWords({ minLength = 0, maxLength, pattern }: Schema): string {
  const blank = pattern === NOT_BLANK
  const bounds =
    maxLength === undefined
      ? ''
      : minLength > 0
        ? ` of ${minLength} to ${maxLength} characters`
        : ` of at most ${maxLength} characters`
  const words = `a string${bounds}${bounds === '' && minLength > 0 && !blank ? ' that is not empty' : ''}`
  return pattern === undefined ? words : `${words} ${PATTERNS[pattern] ?? `that matches ${pattern}`}`
}

/**
 * Describes how many entries an array, or at most an object, must have, as ` of 1 to 1000 entries`; empty if any number will
 * do.
 */
export function entryCount(schema: Schema): string {
  const { minItems: least = 0, maxItems: most = schema.maxProperties } = schema
  if (least === 0) return most === undefined ? '' : ` of at most ${most} entries`
  return most === undefined ? ` of at least ${least} entries` : ` of ${least} to ${most} entries`
}

const decimals = ({ [DECIMALS]: most }: Schema): string =>
  most === undefined ? '' : ` of at most ${most} decimals`

function range({ minimum, maximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return maximum === undefined ? '' : ` of at most ${maximum}`
}

function objectWords({ properties = {}, required = [] }: Schema): string {
  const names = required.length > 0 ? required : Object.keys(properties)
  return names.length > 0 ? `an object with ${inWords(names, 'and')}` : 'an object'
}

/** Of objects told apart by a field or by the one key they have, these; else what each alternative asks for. */
function alternatives(variants: readonly Schema[]): string {
  const some = variants.filter(({ type }) => type !== 'null')
  if (some.length < variants.length) return `${alternatives(some)}, or null`
  const name = some.length > 1 ? discriminator(some) : undefined
  if (name !== undefined) {
    const values = some.map(({ properties }) => String(properties?.[name]?.const))
    return `an object whose ${name} is ${inWords(values)}`
  }
  const keys = some.flatMap((variant) => soleKey(variant) ?? [])
  if (keys.length > 1 && keys.length === some.length) return `an object with one of ${keys.join(', ')}`
  return inWords([...new Set(some.map(expectation))])
}

/** Names with a word before the last. */
export const inWords = (names: readonly string[], word = 'or'): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`

/** Returns the field that tells several shapes of objects apart, as each has another constant in it; undefined for none. */
export function discriminator(variants: readonly Schema[]): string | undefined {
  const [first] = variants
  return Object.keys(first?.properties ?? {}).find((name) =>
    variants.every(({ properties }) => {
      const property = properties?.[name]
      return property !== undefined && 'const' in property
    }),
  )
}

/** Returns the only key that objects of this schema must have; undefined if it is not one. Alternatives can differ by it. */
export const soleKey = ({ type, required = [] }: Schema): string | undefined =>
  type === 'object' && required.length === 1 ? required[0] : undefined

/** Reports whether a value may contain a secret, even one that somebody put at the wrong depth. */
export const isSecret = (schema: Schema): boolean =>
  schema.writeOnly === true ||
  [
    ...(schema.anyOf ?? []),
    ...(schema.items ? [schema.items] : []),
    ...Object.values(schema.properties ?? {}),
    ...Object.values(schema.patternProperties ?? {}),
  ].some(isSecret)
