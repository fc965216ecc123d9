import { fieldsOf, isObject } from '../../runtime/is-object.ts'

/** Finds what is wrong with a value: a sentence, or null if it is right. @param name what the sentence calls it */
type Check = (value: unknown, name: string) => string | null

const expected = (name: string, what: string, got: unknown): string =>
  `"${name}" in params: expected ${what}, got ${got === undefined ? 'nothing' : shown(got)}.`

/** Most characters of a value that a message repeats. @bound reader */
const MOST_SHOWN = 100

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN).toWellFormed()}…` : text
}

const text: Check = (value, name) => (typeof value === 'string' ? null : expected(name, 'text', value))

const object: Check = (value, name) => (isObject(value) ? null : expected(name, 'an object', value))

const texts: Check = (value, name) =>
  object(value, name) ??
  Object.entries(fieldsOf(value))
    .map(([key, one]) => text(one, `${name}.${key}`))
    .find((fault) => fault !== null) ??
  null

const optional =
  (check: Check): Check =>
  (value, name) =>
    value === undefined ? null : check(value, name)

/** Checks the fields of an object. */
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value, name) =>
    object(value, name) ??
    Object.entries(checks)
      .map(([key, check]) => check(fieldsOf(value)[key], name === '' ? key : `${name}.${key}`))
      .find((fault) => fault !== null) ??
    null

/** The lists have one page, so no response has a cursor that could be sent back. */
const noCursor: Check = (value, name) =>
  value === undefined
    ? null
    : `"${name}" in params: the list has one page, so there is no cursor. Leave it out.`

const reference: Check = (value, name) => {
  const { type } = fieldsOf(value)
  if (type === 'ref/prompt') return fields({ name: text })(value, name)
  if (type === 'ref/resource') return fields({ uri: text })(value, name)
  return object(value, name) ?? expected(`${name}.type`, '"ref/prompt" or "ref/resource"', type)
}

const token: Check = (value, name) =>
  typeof value === 'string' || typeof value === 'number' ? null : expected(name, 'text or a number', value)

const LIST = fields({ cursor: noCursor })

/** By method. */
const METHODS: Readonly<Record<string, Check>> = {
  initialize: fields({
    protocolVersion: text,
    capabilities: object,
    clientInfo: fields({ name: text, version: text }),
  }),
  'tools/list': LIST,
  'resources/list': LIST,
  'resources/templates/list': LIST,
  'prompts/list': LIST,
  'tools/call': fields({ name: text, arguments: optional(object) }),
  'prompts/get': fields({ name: text, arguments: optional(texts) }),
  'resources/read': fields({ uri: text }),
  'completion/complete': fields({
    ref: reference,
    argument: fields({ name: text, value: text }),
    context: optional(fields({ arguments: optional(texts) })),
  }),
}

/** Where a request of protocol 2026-07-28 names it. */
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

const COMMON = fields({ _meta: optional(fields({ progressToken: optional(token) })) })

/**
 * Returns what is wrong with the parameters of a request, as a sentence; null if nothing is, or it is not a request of a
 * method that berth has. The SDK reports it as an internal error, with its own data structure as the message.
 */
export function paramsFault(message: unknown): string | null {
  const { jsonrpc, id, method, params } = fieldsOf(message)
  const isRequest = jsonrpc === '2.0' && (typeof id === 'string' || typeof id === 'number')
  const check = isRequest && typeof method === 'string' && Object.hasOwn(METHODS, method) && METHODS[method]
  // Clients of 2026 do not initialize: the SDK says so.
  const isOf2026 = Object.hasOwn(fieldsOf(fieldsOf(params)._meta), VERSION_KEY)
  if (!check || (method === 'initialize' && isOf2026)) return null
  if (params !== undefined && !isObject(params)) return `"params": expected an object, got ${shown(params)}.`
  return COMMON(params ?? {}, '') ?? check(params ?? {}, '')
}
