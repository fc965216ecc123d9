import type { OpenApiDocument } from '../../contract/openapi/model.ts'

/** Responses: status → how often. */
export interface Seen {
  /** By operation id. */
  operations: Map<string, Map<number, number>>
  /** Requests that mean no operation: an unknown path, or a method that it does not have. */
  unmatched: Map<number, number>
}

/** How much of something was reached. */
interface Share {
  reached: number
  documented: number
}

/** One operation of the API. */
export interface CoveredOperation {
  operation: string
  method: string
  path: string
  requests: number
  /** Status → how often, for all responses. */
  statuses: Record<string, number>
  /** Documented statuses without a response, ascending. */
  missing: number[]
  /** Statuses of responses that the document does not have, ascending. */
  undocumented: number[]
}

/** What `berth run --coverage` writes. */
export interface CoverageReport {
  command: readonly string[]
  summary: { operations: Share; statuses: Share; requests: number }
  /** Ids of operations that were never called. */
  never_called: string[]
  /** In the order of the OpenAPI document. */
  operations: CoveredOperation[]
  /** Status → how often, for requests that mean no operation. */
  unmatched: Record<string, number>
}

/** Lays what was seen beside what the OpenAPI document says can be. */
export function report(seen: Seen, document: OpenApiDocument, command: readonly string[]): CoverageReport {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) =>
      covered({ operation: operationId, method: method.toUpperCase(), path }, responses, seen),
    ),
  )
  const documented = operations.flatMap(({ statuses, missing, undocumented }) => [
    ...Object.keys(statuses).filter((status) => !undocumented.includes(Number(status))),
    ...missing,
  ])
  const missing = operations.flatMap((operation) => operation.missing)
  const called = operations.filter(({ requests }) => requests > 0)
  return {
    command,
    summary: {
      operations: { reached: called.length, documented: operations.length },
      statuses: { reached: documented.length - missing.length, documented: documented.length },
      requests: sum(called.map(({ requests }) => requests)) + sum(seen.unmatched.values()),
    },
    never_called: operations.filter(({ requests }) => requests === 0).map(({ operation }) => operation),
    operations,
    unmatched: byStatus(seen.unmatched),
  }
}

function covered(
  operation: Pick<CoveredOperation, 'operation' | 'method' | 'path'>,
  responses: object,
  { operations }: Seen,
): CoveredOperation {
  const seen = operations.get(operation.operation) ?? new Map<number, number>()
  const documented = Object.keys(responses).map(Number).sort(ascending)
  return {
    ...operation,
    requests: sum(seen.values()),
    statuses: byStatus(seen),
    missing: documented.filter((status) => !seen.has(status)),
    undocumented: [...seen.keys()].filter((status) => !documented.includes(status)).sort(ascending),
  }
}

const byStatus = (counts: ReadonlyMap<number, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([a], [b]) => a - b))

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

const ascending = (a: number, b: number): number => a - b
