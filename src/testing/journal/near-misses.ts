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

/** Longest name or segment that is compared letter by letter. */
const MAX_COMPARED = 64

/** The distance of another method, and the largest distance of a suggested path. */
const OTHER_METHOD = 0.2
const FARTHEST = 1.7

/** Suggests operations for a path or a method that does not exist. */
function unknownOperation(
  { method, path }: ExaminedRequest,
  index: OperationIndex<DescribedOperation>,
): NearMiss[] {
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((one) => index.match(one, path) ?? [])
  if (others.length > 0) {
    const methods = others.map((operation) => `${operation.method} ${operation.path}`)
    return [missOf('method', path, `Nothing answers to ${method} here`, methods)]
  }
  const given = segmentsOf(path)
  const rated = index.all.flatMap((operation) => {
    const pattern = segmentsOf(operation.path)
    // Each extra segment counts 1, so paths that are two longer are not compared.
    if (Math.abs(given.length - pattern.length) > FARTHEST) return []
    const distance = distanceOf(given, pattern)
    return {
      name: `${operation.method} ${operation.path}`,
      distance: distance + (operation.method === method ? 0 : OTHER_METHOD),
      // Paths must share something.
      near: distance <= 0.75 * Math.max(given.length, pattern.length) && distance <= FARTHEST,
    }
  })
  const near = rated.filter((one) => one.near).sort((a, b) => a.distance - b.distance)
  const best = near[0]?.distance ?? 0
  const suggestions = near.filter(({ distance }) => distance < best + 0.3).map(({ name }) => name)
  return [missOf('path', path, 'There is nothing at this path', suggestions.slice(0, 4))]
}

/** Returns the distance between two paths: 1 for each segment that is extra, missing or different. */
function distanceOf(given: readonly string[], pattern: readonly string[]): number {
  let row = Array.from({ length: pattern.length + 1 }, (_, index) => index)
  for (const [at, segment] of given.entries()) {
    const next = [at + 1]
    for (const [to, wanted] of pattern.entries()) {
      const replaced = (row[to] ?? 0) + segmentDistance(segment, wanted)
      next.push(Math.min(replaced, (row[to + 1] ?? 0) + 1, (next[to] ?? 0) + 1))
    }
    row = next
  }
  return row[pattern.length] ?? 0
}

function segmentDistance(given: string, wanted: string): number {
  if (given === wanted) return 0
  // Ids contain an underscore. A word in place of an id was more likely meant as a word.
  if (wanted.startsWith('{')) return given.includes('_') ? 0.1 : 0.6
  if (given.length > MAX_COMPARED) return 1
  const begins = given !== '' && (given.startsWith(wanted) || wanted.startsWith(given))
  return begins || nearest(given, [wanted]).length > 0 ? 0.4 : 1
}

/** Returns the known names that a client may have meant. Those that differ only in notation come first. */
function similarNames(name: string, names: readonly string[]): string[] {
  if (name.length > MAX_COMPARED) return []
  const plain = (text: string): string => text.replace(/[_-]/g, '').toLowerCase()
  const same = names.filter((known) => plain(known) === plain(name))
  return same.length > 0 ? same : nearest(name, names)
}

/** Most known names that are listed where none is similar. */
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
