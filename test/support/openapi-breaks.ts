/** A schema of OpenAPI 3.1, or a part of a document. */
type Json = { readonly [key: string]: unknown }

/** A value goes to the instance (`request`) or comes from it (`response`). */
type Direction = 'request' | 'response'

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** Keywords with a number, and in which direction of a request they may move. */
const BOUNDS: readonly (readonly [keyword: string, mayMove: 'up' | 'down'])[] = [
  ['maxLength', 'up'],
  ['maxItems', 'up'],
  ['maxProperties', 'up'],
  ['maximum', 'up'],
  ['minLength', 'down'],
  ['minItems', 'down'],
  ['minProperties', 'down'],
  ['minimum', 'down'],
]

/**
 * Compares two OpenAPI 3.1 documents and returns what of the second breaks a client of the first, as docs/compatibility.md
 * has it: one sentence a break, with the operation and the place. Names of schemas, texts and examples do not count.
 */
export function openapiBreaks(before: Json, after: Json): string[] {
  const now = operationsOf(after)
  return [...operationsOf(before)].flatMap(([at, operation]) => {
    const id = String(operation.operationId)
    const successor = now.get(at)
    if (!successor) return [`${id}: ${at} is removed`]
    const renamed = id === successor.operationId ? [] : [`is ${successor.operationId} now`]
    const found = new Comparison(before, after).operations(operation, successor)
    return [...renamed, ...found].map((one) => `${id}: ${one}`)
  })
}

/** Returns the operations of a document by method and path, each with the parameters of its path. */
function operationsOf(document: Json): Map<string, Json> {
  const found = new Map<string, Json>()
  for (const [path, item] of Object.entries(object(document.paths)))
    for (const method of METHODS.filter((one) => one in object(item))) {
      const value = object(object(item)[method])
      const parameters = [...list(object(item).parameters), ...list(value.parameters)]
      found.set(`${method.toUpperCase()} ${path}`, { ...value, parameters })
    }
  return found
}

/** Compares parts of two documents. Each method returns what breaks, as sentences that begin with the place. */
class Comparison {
  readonly #before: Json
  readonly #after: Json
  /** Pairs of schemas under comparison: a schema may contain itself. */
  readonly #pairs = new Set<string>()

  constructor(before: Json, after: Json) {
    this.#before = before
    this.#after = after
  }

  operations(before: Json, after: Json): string[] {
    return [
      ...this.#parameters(list(before.parameters), list(after.parameters)),
      ...this.#bodies(before.requestBody, after.requestBody),
      ...this.#responses(object(before.responses), object(after.responses)),
    ]
  }

  #parameters(before: readonly unknown[], after: readonly unknown[]): string[] {
    const named = (document: Json, all: readonly unknown[]) =>
      new Map(
        all
          .map((one) => resolved(document, one))
          .map((one) => [`${one.in} parameter ${one.name}`, one] as const),
      )
    const old = named(this.#before, before)
    const now = named(this.#after, after)
    const added = [...now].filter(([name, one]) => !old.has(name) && one.required === true)
    return [
      ...added.map(([name]) => `${name} is new and required`),
      ...[...old].flatMap(([name, one]) => {
        const successor = now.get(name)
        if (!successor) return [`${name} is removed`]
        const required =
          one.required !== true && successor.required === true ? [`${name} has become required`] : []
        return [...required, ...this.schemas(one.schema, successor.schema, 'request', name)]
      }),
    ]
  }

  #bodies(before: unknown, after: unknown): string[] {
    const old = resolved(this.#before, before)
    const now = resolved(this.#after, after)
    if (before === undefined) return now.required === true ? ['a body has become required'] : []
    if (after === undefined) return ['the body is removed']
    const required = old.required !== true && now.required === true ? ['the body has become required'] : []
    return [...required, ...this.#contents(old.content, now.content, 'request', 'body')]
  }

  #responses(before: Json, after: Json): string[] {
    return Object.entries(before).flatMap(([status, one]) => {
      if (!(status in after)) return [`status ${status} is removed`]
      const old = resolved(this.#before, one)
      const now = resolved(this.#after, after[status])
      const missing = Object.keys(object(old.headers)).filter((name) => !hasHeader(now, name))
      return [
        ...missing.map((name) => `${status} has lost the header ${name}`),
        ...this.#contents(old.content, now.content, 'response', status),
      ]
    })
  }

  #contents(before: unknown, after: unknown, direction: Direction, at: string): string[] {
    const now = object(after)
    return Object.entries(object(before)).flatMap(([type, one]) =>
      type in now
        ? this.schemas(object(one).schema, object(now[type]).schema, direction, `${at} ${type}`)
        : [`${at} ${type} is removed`],
    )
  }

  /** Compares two schemas, of a value that goes in a direction. */
  schemas(before: unknown, after: unknown, direction: Direction, at: string): string[] {
    const pair = JSON.stringify([before, after, direction])
    if (this.#pairs.has(pair)) return []
    this.#pairs.add(pair)
    try {
      const old = alternatives(this.#before, before)
      const now = alternatives(this.#after, after)
      // What the one side sends, the other side has to understand.
      const [sent, understood] = direction === 'request' ? [old, now] : [now, old]
      const fields = new Set(now.flatMap(({ properties }) => Object.keys(object(properties))))
      return sent.flatMap((one) => {
        const breaks = understood.map((other) =>
          direction === 'request'
            ? this.#values(one, other, direction, at)
            : this.#values(other, one, direction, at, fields),
        )
        return breaks.sort((a, b) => a.length - b.length)[0] ?? []
      })
    } finally {
      this.#pairs.delete(pair)
    }
  }

  /** @param fields those of all alternatives that are sent */
  #values(
    old: Json,
    now: Json,
    direction: Direction,
    at: string,
    fields: ReadonlySet<string> = new Set(),
  ): string[] {
    const [sent, understood] = direction === 'request' ? [old, now] : [now, old]
    if (!understandsType(sent.type, understood.type))
      return [`${at} is ${now.type ?? 'anything'}, was ${old.type ?? 'anything'}`]
    return [
      ...enums(old, now, direction, at),
      ...(direction === 'request' ? bounds(old, now, at) : []),
      ...this.#fields(old, now, direction, at, fields),
      ...('items' in old || 'items' in now
        ? this.schemas(old.items ?? {}, now.items ?? {}, direction, `${at}[]`)
        : []),
      ...this.#others(old, now, direction, at),
    ]
  }

  #fields(old: Json, now: Json, direction: Direction, at: string, fields: ReadonlySet<string>): string[] {
    // `{type: [object, null], properties}` says nothing of the fields of null.
    if (!isObject(old)) return []
    const before = object(old.properties)
    const after = object(now.properties)
    const required = new Set(list(now.required))
    const wasRequired = new Set(list(old.required))
    // One that could be missing is not removed where a response says for each of its kinds whether it has it.
    const isLeft = (name: string): boolean => name in after || (fields.has(name) && !wasRequired.has(name))
    const removed = Object.keys(before).filter((name) => !isLeft(name))
    const appeared = [...required].filter((name) => !wasRequired.has(name))
    const vanished = [...wasRequired].filter((name) => !required.has(name) && `${name}` in after)
    return [
      ...removed.map((name) => `${at}.${name} is removed`),
      ...(direction === 'request' ? appeared.map((name) => `${at}.${name} has become required`) : []),
      ...(direction === 'response' ? vanished.map((name) => `${at}.${name} may be missing`) : []),
      ...Object.keys(before)
        .filter((name) => name in after)
        .flatMap((name) => this.schemas(before[name], after[name], direction, `${at}.${name}`)),
    ]
  }

  /** Compares the values of a map, and whether names that the schema does not list are allowed. */
  #others(old: Json, now: Json, direction: Direction, at: string): string[] {
    const [before, after] = [old.additionalProperties, now.additionalProperties]
    if (direction === 'request' && before !== false && after === false && isObject(old))
      return [`${at} takes no other fields any more`]
    return isSchema(before) && isSchema(after) ? this.schemas(before, after, direction, `${at}.*`) : []
  }
}

/** Reports whether values of one type are understood where another is expected; a missing type is any. */
const understandsType = (sent: unknown, expected: unknown): boolean =>
  expected === undefined || sent === expected || (sent === 'integer' && expected === 'number')

/** Values of an enum that a request may no longer have. New ones may come in responses. */
function enums(old: Json, now: Json, direction: Direction, at: string): string[] {
  const [before, after] = [valuesOf(old), valuesOf(now)]
  if (direction === 'response') {
    // A field that had one of several values and is any text now says less.
    return before !== null && after === null ? [`${at} has no list of values any more`] : []
  }
  if (after === null) return []
  if (before === null) return [`${at} takes only ${after.join(', ')}`]
  return before.filter((one) => !after.includes(one)).map((one) => `${at} takes ${one} no longer`)
}

/** Returns the values of an enum as JSON; null if the schema allows any of its type. Both booleans are any, and null is the only null. */
function valuesOf(schema: Json): string[] | null {
  const values = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : null
  // A field of a response that is always true and one that is a boolean are the same on the wire.
  return values === null || schema.type === 'boolean' || schema.type === 'null'
    ? null
    : values.map((one) => JSON.stringify(one))
}

const bounds = (old: Json, now: Json, at: string): string[] =>
  BOUNDS.flatMap(([keyword, mayMove]) => {
    const [before, after] = [old[keyword], now[keyword]]
    if (typeof after !== 'number') return []
    const isTighter =
      typeof before !== 'number'
        ? keyword.startsWith('max') || after > 0
        : mayMove === 'up'
          ? after < before
          : after > before
    return isTighter ? [`${at} has ${keyword} ${after}, had ${before ?? 'none'}`] : []
  })

/** Returns what a value of a schema may be: one plain schema for each alternative and type. */
function alternatives(document: Json, schema: unknown): Json[] {
  const { anyOf, oneOf, allOf, ...plain } = resolved(document, schema)
  const branches = [...list(anyOf), ...list(oneOf)]
  const merged = list(allOf).reduce<Json[]>(
    (all, part) => all.flatMap((one) => alternatives(document, part).map((other) => merge(one, other))),
    branches.length === 0
      ? [plain]
      : branches.flatMap((one) => alternatives(document, one)).map((one) => merge(plain, one)),
  )
  return merged.flatMap((one) => {
    if (Array.isArray(one.type))
      return one.type.map((type) => ({
        ...one,
        type,
        ...(Array.isArray(one.enum) ? { enum: one.enum.filter((value) => typeOf(value) === type) } : {}),
      }))
    const values = valuesOf(one)
    return one.type !== undefined || values === null
      ? [one]
      : [{ ...one, type: typeOf(JSON.parse(values[0] ?? 'null')) }]
  })
}

function merge(one: Json, other: Json): Json {
  const required = [...list(one.required), ...list(other.required)]
  return {
    ...one,
    ...other,
    ...('properties' in one || 'properties' in other
      ? { properties: { ...object(one.properties), ...object(other.properties) } }
      : {}),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  }
}

/** Follows references within the document. */
function resolved(document: Json, part: unknown): Json {
  const { $ref, ...rest } = object(part)
  if (typeof $ref !== 'string') return rest
  const target = $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, key) => object(at)[key.replaceAll('~1', '/').replaceAll('~0', '~')], document)
  return { ...resolved(document, target), ...rest }
}

const typeOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'array'
      : Number.isInteger(value)
        ? 'integer'
        : typeof value

const hasHeader = (response: Json, name: string): boolean =>
  Object.keys(object(response.headers)).some((one) => one.toLowerCase() === name.toLowerCase())

const isObject = ({ type, properties }: Json): boolean =>
  type === 'object' || (type === undefined && properties !== undefined)
const isSchema = (value: unknown): boolean => typeof value === 'object' && value !== null
const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
