import { nearest } from '../runtime/validation/nearest.ts'
import type { IndexedOperation, OperationIndex } from './operations.ts'

/** Longest segment that is compared letter by letter. @bound reader */
const MAX_COMPARED = 64

/** The distance of another method, and the largest distance of a suggested path. */
const OTHER_METHOD = 0.2
const FARTHEST = 1.7

/** The same for a path that is one, with other methods. */
const FARTHEST_OF_METHOD = 1

/** The distance of a parent that is missing or too much, such as `/servers/{serverId}` before `/projects`. */
const PARENT = 0.5

/** The distance of a word for an operation in place of the one in its path. */
const OTHER_WORD = 0.2

/** Segments with what people call them elsewhere. Verbs of operations (`tasks.answer`) count without being listed. */
const OTHER_WORDS: Readonly<Record<string, readonly string[]>> = {
  actions: ['start', 'stop', 'restart', 'reboot', 'sleep', 'wake', 'action'],
  attach: ['connect', 'websocket', 'ws'],
  cancel: ['abort', 'stop', 'kill'],
  exec: ['execute', 'run', 'command', 'commands', 'shell'],
  input: ['answer', 'answers', 'reply', 'respond', 'message', 'messages', 'stdin', 'send', 'write'],
  keys: ['api-keys', 'api_keys', 'apikeys', 'tokens'],
  logs: ['output'],
  output: ['logs', 'stdout'],
  projects: ['apps', 'app'],
  screen: ['snapshot', 'screenshot'],
  secrets: ['env', 'environment', 'variables', 'vars'],
  servers: ['sandboxes', 'sandbox', 'machines', 'containers', 'vms'],
  tasks: ['jobs', 'runs'],
  webhooks: ['hooks'],
}

/** Methods that operations have. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Returns the operations that a request may have meant whose method and path no operation has, nearest first: their
 * paths resemble it, lack a parent, or have another word for the same. For a path that has other methods, these are those
 * of the request's own.
 */
export function nearOperations<Operation extends IndexedOperation>(
  method: string,
  path: string,
  index: OperationIndex<Operation>,
): Operation[] {
  const given = path.replace(/\/$/, '').split('/').slice(1)
  const isPath = METHODS.some((one) => index.match(one, path) !== undefined)
  const rated = index.all.flatMap((operation) => {
    const isSame = operation.method === method
    if (isPath && !isSame) return []
    const { distance, length } = distanceTo(given, operation, isSame)
    if (distance > (isPath ? FARTHEST_OF_METHOD : FARTHEST) || distance > 0.75 * length) return []
    return [{ operation, distance: distance + (isSame ? 0 : OTHER_METHOD) }]
  })
  rated.sort((a, b) => a.distance - b.distance)
  const best = rated[0]?.distance ?? 0
  return rated.filter(({ distance }) => distance < best + 0.3).map(({ operation }) => operation)
}

/** Returns how a suggestion names an operation: `POST /servers/{serverId}/projects`. */
export const methodAndPath = ({ method, path }: IndexedOperation): string => `${method} ${path}`

/** Most operations that an error suggests. @bound reader */
const MOST_SUGGESTED = 3

/**
 * Returns a sentence that names the operations that a request may have meant, those of its own method if there are any;
 * null if none is near.
 */
export function suggestOperations(
  method: string,
  path: string,
  index: OperationIndex<IndexedOperation>,
): string | null {
  const wanted = method === 'HEAD' ? 'GET' : method
  const near = nearOperations(wanted, path, index)
  const same = near.filter((operation) => operation.method === wanted)
  // Nobody is sent to what removes something, but by its own method.
  const others = near.filter((operation) => operation.method !== 'DELETE')
  const suggested = (same.length > 0 ? same : others).slice(0, MOST_SUGGESTED).map(methodAndPath)
  return suggested.length === 0 ? null : `Did you mean ${suggested.join(' or ')}?`
}

/** Returns the distance of a requested path to an operation's, and the number of segments that it is measured by. */
function distanceTo(
  given: readonly string[],
  { id, path }: IndexedOperation,
  isSameMethod: boolean,
): { distance: number; length: number } {
  const pattern = path.split('/').slice(1)
  const length = Math.max(given.length, pattern.length)
  const verb = id.slice(id.lastIndexOf('.') + 1).toLowerCase()
  // What the operation is about has to be there.
  const noun = pattern.findLast((segment) => !segment.startsWith('{')) ?? ''
  // Each extra segment counts 1, but a parent has two.
  if (Math.abs(given.length - pattern.length) > FARTHEST + 2) return { distance: Infinity, length }
  if (!given.some((segment) => segmentDistance(segment, noun, verb) < 0.5))
    return { distance: Infinity, length }
  const distances = [distanceOf(given, pattern, verb)]
  // `POST /servers/create` and `POST /servers/{serverId}/delete`.
  if (given.length > 1 && given.at(-1)?.toLowerCase() === verb)
    distances.push(OTHER_WORD + distanceOf(given.slice(0, -1), pattern, verb))
  if (isSameMethod && hasParent(pattern)) distances.push(PARENT + distanceOf(given, pattern.slice(2), verb))
  if (isSameMethod && hasParent(given)) distances.push(PARENT + distanceOf(given.slice(2), pattern, verb))
  return { distance: Math.min(...distances), length }
}

/** Reports whether a path has a noun and an id before others. */
const hasParent = (segments: readonly string[]): boolean =>
  segments.length > 2 && (/^\{/.test(segments[1] ?? '') || segments[1]?.includes('_') === true)

/** Returns the distance between two paths: 1 for each segment that is extra, missing or different. */
function distanceOf(given: readonly string[], pattern: readonly string[], verb: string): number {
  let row = Array.from({ length: pattern.length + 1 }, (_, index) => index)
  for (const [at, segment] of given.entries()) {
    const next = [at + 1]
    for (const [to, wanted] of pattern.entries()) {
      const isLast = at === given.length - 1 && to === pattern.length - 1
      const replaced = (row[to] ?? 0) + segmentDistance(segment, wanted, isLast ? verb : '')
      next.push(Math.min(replaced, (row[to + 1] ?? 0) + 1, (next[to] ?? 0) + 1))
    }
    row = next
  }
  return row[pattern.length] ?? 0
}

function segmentDistance(given: string, wanted: string, verb: string): number {
  if (given === wanted) return 0
  // Ids contain an underscore. A word in place of an id was more likely meant as a word.
  if (wanted.startsWith('{')) return given.includes('_') ? 0.1 : 0.6
  const word = given.toLowerCase()
  if (word !== '' && (word === verb || OTHER_WORDS[wanted]?.includes(word))) return OTHER_WORD
  if (given.length > MAX_COMPARED) return 1
  const begins = given !== '' && (given.startsWith(wanted) || wanted.startsWith(given))
  return begins || nearest(given, [wanted]).length > 0 ? 0.4 : 1
}
