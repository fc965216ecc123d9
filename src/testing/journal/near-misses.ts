import { methodAndPath, nearOperations } from '../../contract/near-paths.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import { percentDecoded } from '../../runtime/decode.ts'
import { nearest } from '../../runtime/validation/nearest.ts'

/** Something in a request that nothing read, or that resembles something else. */
export interface NearMiss {
  kind: 'field' | 'query' | 'path' | 'method' | 'id'
  /** Its position: a field with its parents (`source.urll`), a parameter, or the path. */
  at: string
  message: string
  /** What the client may have meant, nearest first. */
  suggestions: string[]
}

/** The parts of a request that near misses depend on. */
interface ExaminedRequest {
  method: string
  path: string
  query: URLSearchParams
  status: number
  operation: DescribedOperation | undefined
  /** The body's JSON; undefined if there is none. */
  body: unknown
}

/**
 * Finds likely mistakes in a request: fields that nothing read, paths and methods that do not exist, and ids of
 * another kind.
 */
export function nearMisses(request: ExaminedRequest, index: OperationIndex<DescribedOperation>): NearMiss[] {
  const { operation, query, body } = request
  if (operation === undefined)
    return request.status === 404 || request.status === 405 ? unknownOperation(request, index) : []
  return [
    ...(body === undefined ? [] : unreadFields(operation.body, body, '')),
    ...unreadParameters(operation, query),
    ...(request.status === 404 ? foreignIds(operation, request.path) : []),
  ]
}

/** The parts of a JSON Schema that name fields. */
interface FieldSchema {
  type?: unknown
  properties?: Record<string, FieldSchema>
  patternProperties?: Record<string, FieldSchema>
  additionalProperties?: boolean | FieldSchema
  items?: FieldSchema
  anyOf?: FieldSchema[]
  oneOf?: FieldSchema[]
  allOf?: FieldSchema[]
}

function unreadFields(shape: FieldSchema | undefined, value: unknown, place: string): NearMiss[] {
  if (Array.isArray(value)) {
    const items = alternativesOf(shape).flatMap(({ items }) => (items ? [items] : []))
    return value.flatMap((one, at) => unreadFields(union(items), one, `${place}[${at}]`))
  }
  if (typeof value !== 'object' || value === null) return []
  const shapes = alternativesOf(shape)
  // A schema without named fields knows every name, and one that accepts anything knows none.
  if (place !== '' && (shapes.length === 0 || shapes.some(isFree))) return []
  const known = shapes.flatMap(({ properties }) => Object.entries(properties ?? {}))
  const names = [...new Set(known.map(([name]) => name))]
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = place === '' ? name : `${place}.${name}`
    const inside = known.flatMap(([one, of]) => (one === name ? [of] : []))
    if (inside.length > 0) return unreadFields(union(inside), inner, at)
    return [unreadOf('field', at, 'Nothing read this field', name, names)]
  })
}

/** Returns a schema with all its alternatives. */
const alternativesOf = (shape: FieldSchema | undefined): FieldSchema[] =>
  shape === undefined
    ? []
    : [
        shape,
        ...[shape.anyOf, shape.oneOf, shape.allOf].flatMap((all) => (all ?? []).flatMap(alternativesOf)),
      ]

const union = (shapes: FieldSchema[]): FieldSchema | undefined =>
  shapes.length === 0 ? undefined : { anyOf: shapes }

const isFree = ({ properties, patternProperties, additionalProperties, type }: FieldSchema): boolean =>
  patternProperties !== undefined ||
  typeof additionalProperties === 'object' ||
  (type === 'object' && properties === undefined)

function unreadParameters({ query: shape }: DescribedOperation, query: URLSearchParams): NearMiss[] {
  const names = alternativesOf(shape).flatMap(({ properties }) => Object.keys(properties ?? {}))
  return [...new Set(query.keys())]
    .filter((name) => !names.includes(name))
    .map((name) => unreadOf('query', name, 'Nothing read this parameter of the query', name, names))
}

/** Kinds of ids by prefix, as path parameters name them. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  serverId: 'srv_',
  projectId: 'prj_',
  taskId: 'task_',
  buildId: 'bld_',
  keyId: 'key_',
  webhookId: 'wh_',
}

/** Finds ids of another kind than the path expects. */
function foreignIds({ path: pattern }: DescribedOperation, path: string): NearMiss[] {
  const given = segmentsOf(path)
  return segmentsOf(pattern).flatMap((segment, at) => {
    const name = segment.startsWith('{') ? segment.slice(1, -1) : ''
    const prefix = ID_PREFIXES[name]
    const text = given[at] ?? ''
    const id = percentDecoded(text) ?? text
    if (prefix === undefined || id.startsWith(prefix)) return []
    const kind = name.replace(/Id$/, '')
    return [
      missOf('id', name, `${JSON.stringify(id)} is no id of a ${kind}, which begins with ${prefix}`, []),
    ]
  })
}

/** Longest name that is compared letter by letter. @bound reader */
const MAX_COMPARED = 64

/** Most operations that are suggested for a path. @bound reader */
const MOST_PATHS = 4

/** Suggests operations for a path or a method that does not exist. */
function unknownOperation(
  { method, path }: ExaminedRequest,
  index: OperationIndex<DescribedOperation>,
): NearMiss[] {
  const near = nearOperations(method, path, index).slice(0, MOST_PATHS).map(methodAndPath)
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((one) => index.match(one, path) ?? [])
  return others.length > 0
    ? [missOf('method', path, `Nothing answers to ${method} here`, [...near, ...others.map(methodAndPath)])]
    : [missOf('path', path, 'There is nothing at this path', near)]
}

/** Returns the known names that a client may have meant. Those that differ only in notation come first. */
function similarNames(name: string, names: readonly string[]): string[] {
  if (name.length > MAX_COMPARED) return []
  const plain = (text: string): string => text.replace(/[_-]/g, '').toLowerCase()
  const same = names.filter((known) => plain(known) === plain(name))
  return same.length > 0 ? same : nearest(name, names)
}

/** Most known names that are listed where none is similar. @bound reader */
const MOST_KNOWN = 12

/** Describes a name that nothing read, with the similar ones that are known, or else all of them. */
function unreadOf(
  kind: NearMiss['kind'],
  at: string,
  what: string,
  name: string,
  names: readonly string[],
): NearMiss {
  const miss = missOf(kind, at, what, similarNames(name, names))
  if (miss.suggestions.length > 0 || names.length === 0) return miss
  const rest = names.length > MOST_KNOWN ? ` and ${names.length - MOST_KNOWN} more` : ''
  return { ...miss, message: `${miss.message} Known: ${names.slice(0, MOST_KNOWN).join(', ')}${rest}.` }
}

const missOf = (kind: NearMiss['kind'], at: string, what: string, suggestions: string[]): NearMiss => ({
  kind,
  at,
  message: suggestions.length === 0 ? `${what}.` : `${what}. Is ${suggestions.join(' or ')} meant?`,
  suggestions,
})

const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1)
