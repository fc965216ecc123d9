import { type Given, Mistake } from '../../contract/given.ts'

/** The keywords of JSON Schema (draft 7) that the shapes of fixtures files are made of. */
export interface Shape {
  readonly type?: string | undefined
  readonly const?: unknown | undefined
  readonly enum?: readonly unknown[] | undefined
  readonly anyOf?: readonly Shape[] | undefined
  readonly pattern?: string | undefined
  readonly minLength?: number | undefined
  readonly maxLength?: number | undefined
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly items?: Shape | undefined
  readonly minItems?: number | undefined
  readonly uniqueItems?: boolean | undefined
  readonly properties?: Readonly<Record<string, Shape>> | undefined
  readonly required?: readonly string[] | undefined
  readonly patternProperties?: Readonly<Record<string, Shape>> | undefined
  readonly additionalProperties?: unknown
  /** Its title says what the keys are, as words that follow "expected". */
  readonly propertyNames?: Shape | undefined
  /** What it is, as words that follow "expected". */
  readonly title?: string | undefined
  /** Its value is shown to nobody, not even where it is wrong. */
  readonly writeOnly?: boolean | undefined
}

/**
 * Refuses what does not have a shape. The shapes are JSON Schema, so that what editors are told of a file
 * is what holds; a library's validator would tell neither which variant was meant nor where to look.
 *
 * @throws Mistake for the first thing that differs
 */
export function check(given: Given, shape: Shape): void {
  const { anyOf, type } = shape
  if (anyOf) {
    checkVariants(given, shape, anyOf)
    return
  }
  if (shape.enum && !shape.enum.includes(given.value)) throw wrong(given, shape)
  if ('const' in shape && given.value !== shape.const) throw wrong(given, shape)
  if (type === 'object') checkObject(given, shape)
  else if (type === 'array') checkList(given, shape)
  else if (!isPlain(given.value, shape)) throw wrong(given, shape)
}

/** Texts, numbers, booleans, or anything where no type is said. */
function isPlain(value: unknown, { type, pattern, minLength = 0, maxLength, ...shape }: Shape): boolean {
  if (type === 'string') {
    if (typeof value !== 'string' || !value.isWellFormed()) return false
    const length = maxLength === undefined ? value.length : Array.from(value).length
    if (length < minLength || length > (maxLength ?? Number.POSITIVE_INFINITY)) return false
    return pattern === undefined || new RegExp(pattern, 'u').test(value)
  }
  if (type === 'number' || type === 'integer') {
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = shape
    if (typeof value !== 'number' || value < minimum || value > maximum) return false
    return type === 'number' || Number.isInteger(value)
  }
  return type === undefined || typeof value === type
}

function checkObject(given: Given, shape: Shape): void {
  const { properties = {}, required = [], patternProperties = {}, additionalProperties } = shape
  if (!given.isObject) throw wrong(given, shape)
  const patterns = Object.entries(patternProperties)
  for (const field of given.entries()) {
    const key = String(field.place.at(-1))
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined
    const [, named] = patterns.find(([pattern]) => new RegExp(pattern, 'u').test(key)) ?? []
    const inner = known ?? named
    if (inner) check(field, inner)
    else if (additionalProperties === false) throw unknownKey(field, shape)
  }
  for (const name of required) {
    if (Object.hasOwn(given.value as object, name)) continue
    given.missing(name, expected(properties[name] ?? {}))
  }
}

function checkList(given: Given, shape: Shape): void {
  const { items = {}, minItems = 0, uniqueItems = false } = shape
  if (!Array.isArray(given.value)) throw wrong(given, shape)
  const entries = given.list()
  for (const entry of entries) check(entry, items)
  if (entries.length < minItems) throw wrong(given, shape)
  const seen = new Set<unknown>()
  for (const entry of uniqueItems ? entries : []) {
    if (seen.has(entry.value)) throw new Mistake(entry.place, 'it stands in this list already.')
    seen.add(entry.value)
  }
}

/** Of several variants one is meant: that of the value's type, and of objects that which its keys tell. */
function checkVariants(given: Given, shape: Shape, variants: readonly Shape[]): void {
  const meant = variants.filter((variant) => isKind(given, variant))
  const [only] = meant
  if (!only || meant.length > 1) throw wrong(given, shape)
  check(given, only)
}

function isKind(given: Given, { type, properties = {}, required = [], ...shape }: Shape): boolean {
  if (type !== 'object') {
    if ('const' in shape) return given.value === shape.const
    return type === undefined || typeof given.value === type
  }
  if (!given.isObject) return false
  const value = given.value as Record<string, unknown>
  const told = required.filter((key) => 'const' in (properties[key] ?? {}))
  if (told.length > 0) return told.every((key) => value[key] === properties[key]?.const)
  return required.some((key) => Object.hasOwn(value, key))
}

function unknownKey(field: Given, { properties = {}, propertyNames }: Shape): Mistake {
  const reason = propertyNames
    ? `expected ${expected(propertyNames)}.`
    : `there is no such field; known are ${Object.keys(properties).join(', ')}.`
  return new Mistake(field.place, reason, 'key')
}

/** What is to be thrown where a value is none of a shape; a secret that stands in it is not shown. */
export function wrong(given: Given, shape: Shape): Mistake {
  if (!isSecret(shape)) return given.mistake(expected(shape))
  // Of a text in place of another there is nothing to say.
  const got = shape.type === 'object' || typeof given.value !== 'string' ? `, got ${kindOf(given.value)}` : ''
  return new Mistake(given.place, `expected ${expected(shape)}${got}.`)
}

/** Whether a secret may stand in it, also where somebody has put it at the wrong depth. */
const isSecret = (shape: Shape): boolean =>
  shape.writeOnly === true ||
  [
    ...(shape.anyOf ?? []),
    ...(shape.items ? [shape.items] : []),
    ...Object.values(shape.properties ?? {}),
    ...Object.values(shape.patternProperties ?? {}),
  ].some(isSecret)

/** What a value is, in words that do not show it. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  const kinds: Readonly<Record<string, string>> = {
    object: 'an object',
    string: 'a text',
    number: 'a number',
    boolean: 'true or false',
  }
  return kinds[typeof value] ?? 'something else'
}

/** What a shape asks for, in words. */
export function expected(shape: Shape): string {
  const { title, type, anyOf, minLength, maxLength, minimum, maximum, minItems } = shape
  if (title) return title
  if (anyOf) return listed(anyOf.map(expected))
  if ('const' in shape) return JSON.stringify(shape.const)
  if (shape.enum) return `one of ${shape.enum.map((one) => String(one)).join(', ')}`
  if (type === 'object') {
    const names = Object.keys(shape.properties ?? {})
    return names.length > 0 ? `an object with ${names.join(', ')}` : 'an object'
  }
  const noun = { string: 'a text', integer: 'a whole number', array: 'a list', boolean: 'true or false' }[
    type ?? ''
  ]
  const bounds = [
    minLength === 1 ? 'that is not empty' : '',
    maxLength === undefined ? '' : `of at most ${maxLength} characters`,
    minItems ? `of at least ${minItems}` : '',
    minimum === undefined ? '' : `from ${minimum}`,
    maximum === undefined ? '' : `to ${maximum}`,
  ]
  return [noun ?? `a ${type ?? 'value'}`, ...bounds].filter(Boolean).join(' ')
}

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} or ${parts.at(-1)}`
