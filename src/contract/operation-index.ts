import type { AnyElysia } from 'elysia'
import { ACCOUNT_LEVEL } from './operation.ts'

/** One operation of the API, as its route declares it. */
export interface IndexedOperation {
  /** The operation id, such as `servers.create`. */
  readonly id: string
  readonly method: string
  /** With its parameters in braces: `/servers/{serverId}/exec`. */
  readonly path: string
  /** Statuses of its successes, ascending. */
  readonly successes: readonly number[]
  /** Shapes of what is sent, as JSON Schema; undefined where nothing is read. */
  readonly body: object | undefined
  readonly query: object | undefined
  /** It takes a key that reaches the whole account. */
  readonly accountLevel: boolean
}

/** Which operation a request means, without asking the app. */
export interface OperationIndex {
  readonly all: readonly IndexedOperation[]
  /** @param path without a query */
  match(method: string, path: string): IndexedOperation | undefined
}

/** Reads the operations of an app. Takes milliseconds: callers keep the result. */
export function operationIndex(app: AnyElysia): OperationIndex {
  const all = app.routes.flatMap(({ method, path, hooks }): IndexedOperation[] => {
    const id: unknown = hooks.detail?.operationId
    if (typeof id !== 'string') return []
    const successes = Object.keys(hooks.response ?? {}).map(Number)
    return [
      {
        id,
        method,
        path: path.replaceAll(/:([^/]+)/g, '{$1}'),
        successes: successes.sort((a, b) => a - b),
        body: hooks.body,
        query: hooks.query,
        accountLevel: hooks.detail?.[ACCOUNT_LEVEL] === true,
      },
    ]
  })
  const patterns = all.map((operation) => ({ operation, segments: segmentsOf(operation.path) }))
  return {
    all,
    match(method, path) {
      const given = segmentsOf(path)
      // A fixed segment goes before a parameter at the same place, as the router has it.
      return patterns
        .filter(({ operation, segments }) => operation.method === method && fits(segments, given))
        .sort((a, b) => parametersOf(a.segments) - parametersOf(b.segments))[0]?.operation
    },
  }
}

const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1)

const fits = (pattern: readonly string[], given: readonly string[]): boolean =>
  pattern.length === given.length &&
  pattern.every((part, index) => (isParameter(part) ? given[index] !== '' : part === given[index]))

const isParameter = (part: string): boolean => part.startsWith('{')

const parametersOf = (segments: readonly string[]): number => segments.filter(isParameter).length
