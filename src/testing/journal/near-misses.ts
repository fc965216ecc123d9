import { nearest } from '../../contract/nearest.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'

/** Something in a request that nothing read, or that nearly was something else. */
export interface NearMiss {
  kind: 'field' | 'query' | 'path' | 'method' | 'id'
  /** Where it stands: a field with those around it (`source.urll`), a parameter, or the path. */
  at: string
  message: string
  /** What may have been meant, nearest first. */
  suggestions: string[]
}

/** A request as far as near misses show in it. */
export interface Examined {
  method: string
  path: string
  query: URLSearchParams
  status: number
  operation: DescribedOperation | undefined
  /** The body's JSON; undefined where there is none. */
  body: unknown
}

/** What a client may have meant otherwise: fields that nothing read, paths and methods that lead nowhere, ids of others. */
export function nearMisses(request: Examined, index: OperationIndex<DescribedOperation>): NearMiss[] {
  const { operation, query, body } = request
  if (operation === undefined)
    return request.status === 404 || request.status === 405 ? lost(request, index) : []
  return [
    ...(body === undefined ? [] : unreadFields(operation.body, body, '')),
    ...unreadParameters(operation, query),
    ...(request.status === 404 ? foreignIds(operation, request.path) : []),
  ]
}

/** A JSON Schema, as far as it says which fields there are. */
interface Shape {
  type?: unknown
  properties?: Record<string, Shape>
  patternProperties?: Record<string, Shape>
  additionalProperties?: boolean | Shape
  items?: Shape
  anyOf?: Shape[]
  oneOf?: Shape[]
  allOf?: Shape[]
}

function unreadFields(shape: Shape | undefined, value: unknown, place: string): NearMiss[] {
  if (Array.isArray(value)) {
    const items = shapesOf(shape).flatMap(({ items }) => (items ? [items] : []))
    return value.flatMap((one, at) => unreadFields(union(items), one, `${place}[${at}]`))
  }
  if (typeof value !== 'object' || value === null) return []
  const shapes = shapesOf(shape)
  // Any name is known where names are free, and nothing is known of what may be anything.
  if (place !== '' && (shapes.length === 0 || shapes.some(isFree))) return []
  const known = shapes.flatMap(({ properties }) => Object.entries(properties ?? {}))
  const names = [...new Set(known.map(([name]) => name))]
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = place === '' ? name : `${place}.${name}`
    const inside = known.flatMap(([one, of]) => (one === name ? [of] : []))
    if (inside.length > 0) return unreadFields(union(inside), inner, at)
    return [missOf('field', at, 'Nothing read this field', names.length === 0 ? [] : likely(name, names))]
  })
}

/** The shapes that a value may have, alternatives taken apart. */
const shapesOf = (shape: Shape | undefined): Shape[] =>
  shape === undefined
    ? []
    : [shape, ...[shape.anyOf, shape.oneOf, shape.allOf].flatMap((all) => (all ?? []).flatMap(shapesOf))]

const union = (shapes: Shape[]): Shape | undefined => (shapes.length === 0 ? undefined : { anyOf: shapes })

const isFree = ({ properties, patternProperties, additionalProperties, type }: Shape): boolean =>
  patternProperties !== undefined ||
  typeof additionalProperties === 'object' ||
  (type === 'object' && properties === undefined)

function unreadParameters({ query: shape }: DescribedOperation, query: URLSearchParams): NearMiss[] {
  const names = shapesOf(shape).flatMap(({ properties }) => Object.keys(properties ?? {}))
  return [...new Set(query.keys())]
    .filter((name) => !names.includes(name))
    .map((name) => missOf('query', name, 'Nothing read this parameter of the query', likely(name, names)))
}

/** The kinds of ids by their prefixes, as path parameters call them. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  serverId: 'srv_',
  projectId: 'prj_',
  taskId: 'task_',
  buildId: 'bld_',
  keyId: 'key_',
  webhookId: 'wh_',
}

/** Ids of another kind than the path wants. */
function foreignIds({ path: pattern }: DescribedOperation, path: string): NearMiss[] {
  const given = segmentsOf(path)
  return segmentsOf(pattern).flatMap((segment, at) => {
    const name = segment.startsWith('{') ? segment.slice(1, -1) : ''
    const prefix = ID_PREFIXES[name]
    const id = decoded(given[at] ?? '')
    if (prefix === undefined || id.startsWith(prefix)) return []
    const kind = name.replace(/Id$/, '')
    return [
      missOf('id', name, `${JSON.stringify(id)} is no id of a ${kind}, which begins with ${prefix}`, []),
    ]
  })
}

/** Longest name or segment of a path that is compared letter by letter, which takes as long as it has letters. */
const LONGEST = 64

/** What another method costs in the order of paths, and how far a path may be from the one that is meant. */
const OTHER_METHOD = 0.2
const FARTHEST = 1.7

/** What leads nowhere: by its path, or by its method. */
function lost({ method, path }: Examined, index: OperationIndex<DescribedOperation>): NearMiss[] {
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((one) => index.match(one, path) ?? [])
  if (others.length > 0) {
    const methods = others.map((operation) => `${operation.method} ${operation.path}`)
    return [missOf('method', path, `Nothing answers to ${method} here`, methods)]
  }
  const given = segmentsOf(path)
  const rated = index.all.flatMap((operation) => {
    const pattern = segmentsOf(operation.path)
    // Each segment too many counts 1: what is longer by two is not compared, however long it is.
    if (Math.abs(given.length - pattern.length) > FARTHEST) return []
    const distance = distanceOf(given, pattern)
    return {
      name: `${operation.method} ${operation.path}`,
      distance: distance + (operation.method === method ? 0 : OTHER_METHOD),
      // Something of it must be the same.
      near: distance <= 0.75 * Math.max(given.length, pattern.length) && distance <= FARTHEST,
    }
  })
  const near = rated.filter((one) => one.near).sort((a, b) => a.distance - b.distance)
  const best = near[0]?.distance ?? 0
  const suggestions = near.filter(({ distance }) => distance < best + 0.3).map(({ name }) => name)
  return [missOf('path', path, 'There is nothing at this path', suggestions.slice(0, 4))]
}

/** How much would have to change to make one path of the other: 1 for a segment too many, too few, or another. */
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
  // Ids have a prefix; a word where an id belongs was rather meant as a word.
  if (wanted.startsWith('{')) return given.includes('_') ? 0.1 : 0.6
  if (given.length > LONGEST) return 1
  const begins = given !== '' && (given.startsWith(wanted) || wanted.startsWith(given))
  return begins || nearest(given, [wanted]).length > 0 ? 0.4 : 1
}

/** Known names that somebody may have meant: those that differ in their way of writing first. */
function likely(name: string, names: readonly string[]): string[] {
  if (name.length > LONGEST) return []
  const plain = (text: string): string => text.replace(/[_-]/g, '').toLowerCase()
  const same = names.filter((known) => plain(known) === plain(name))
  return same.length > 0 ? same : nearest(name, names)
}

const missOf = (kind: NearMiss['kind'], at: string, what: string, suggestions: string[]): NearMiss => ({
  kind,
  at,
  message: suggestions.length === 0 ? `${what}.` : `${what}. Is ${suggestions.join(' or ')} meant?`,
  suggestions,
})

const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1)

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
