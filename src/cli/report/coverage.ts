import type { OpenApiDocument } from '../../contract/openapi/model.ts'
import type { WholeEntry } from '../../testing/testing.ts'

/** Numbers of responses by status. */
type Statuses = Readonly<Record<string, number>>

/** A share of documented items that were reached. */
interface Share {
  reached: number
  documented: number
}

/** The coverage of one operation. */
interface CoveredOperation {
  operation: string
  method: string
  path: string
  requests: number
  /** Number of responses by status. */
  statuses: Record<string, number>
  /** Documented statuses without a response, ascending. */
  missing: number[]
  /** Statuses of responses that the document lacks, ascending. */
  undocumented: number[]
}

/** The file that `berth run --coverage` writes. */
export interface CoverageReport {
  command: readonly string[]
  /** When the first of its runs began, and when it was written, ISO 8601. */
  began_at: string
  ended_at: string
  summary: {
    operations: Share
    /** Operations with a response of 2xx, or of 101 for a WebSocket, and their percentage of all. */
    succeeded: { operations: number; percent: number }
    statuses: Share
    requests: number
  }
  /** Ids of operations without a request. */
  never_called: string[]
  /** In the order of the OpenAPI document. */
  operations: CoveredOperation[]
  /** Number of responses by status, for requests without an operation. */
  unmatched: Record<string, number>
}

/** The responses of one run or several. */
export interface ObservedResponses {
  /** By operation id. */
  readonly operations: Readonly<Record<string, Statuses>>
  /** Requests without an operation: an unknown path, or an unknown method of a path. */
  readonly unmatched: Statuses
}

/** Counts the responses of requests. */
export function countResponses(
  requests: readonly Pick<WholeEntry, 'operation' | 'status'>[],
): ObservedResponses {
  const operations: Record<string, Record<string, number>> = {}
  const unmatched: Record<string, number> = {}
  for (const { operation, status } of requests) {
    let counts = unmatched
    if (operation !== null) {
      operations[operation] ??= {}
      counts = operations[operation]
    }
    counts[status] = (counts[status] ?? 0) + 1
  }
  return { operations, unmatched }
}

/** Adds the responses of another report. */
export function mergeResponses(one: ObservedResponses, other: CoverageReport): ObservedResponses {
  const operations: Record<string, Statuses> = { ...one.operations }
  for (const { operation, statuses } of other.operations)
    if (Object.keys(statuses).length > 0) operations[operation] = sum(operations[operation] ?? {}, statuses)
  return { operations, unmatched: sum(one.unmatched, other.unmatched) }
}

function sum(a: Statuses, b: Statuses): Statuses {
  const total: Record<string, number> = { ...a }
  for (const [status, count] of Object.entries(b)) total[status] = (total[status] ?? 0) + count
  return total
}

/** Summarizes a coverage in a sentence, without a full stop. */
export const coverageText = ({ summary: { operations, statuses } }: CoverageReport): string =>
  `reached ${operations.reached} of ${operations.documented} operations and ${statuses.reached} of ${statuses.documented} documented statuses`

/** The run that a coverage is of. */
interface CoveredRun {
  readonly command: readonly string[]
  readonly began_at: string
  readonly ended_at: string
}

/** An operation of the API's OpenAPI document. */
export interface DocumentedOperation extends Pick<CoveredOperation, 'operation' | 'method' | 'path'> {
  /** Statuses of its responses, ascending. */
  readonly documented: readonly number[]
}

/** Returns the operations of an OpenAPI document in its order. */
export const documentedOperations = ({ paths }: OpenApiDocument): DocumentedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) => ({
      operation: operationId,
      method: method.toUpperCase(),
      path,
      // `default` is for statuses that it does not list.
      documented: Object.keys(responses)
        .filter((status) => status !== 'default')
        .map(Number)
        .sort(ascending),
    })),
  )

/** Compares responses with the operations of the OpenAPI document. */
export function coverageReport(
  seen: ObservedResponses,
  described: readonly DocumentedOperation[],
  run: CoveredRun,
): CoverageReport {
  const operations = described.map((operation) => operationCoverage(operation, seen))
  const documented = operations.flatMap(({ statuses, missing, undocumented }) => [
    ...Object.keys(statuses).filter((status) => !undocumented.includes(Number(status))),
    ...missing,
  ])
  const missing = operations.flatMap((operation) => operation.missing)
  const called = operations.filter(({ requests }) => requests > 0)
  const succeeded = called.filter(({ statuses }) =>
    Object.keys(statuses).some((status) => /^(?:2|101$)/.test(status)),
  )
  return {
    command: run.command,
    began_at: run.began_at,
    ended_at: run.ended_at,
    summary: {
      operations: { reached: called.length, documented: operations.length },
      succeeded: {
        operations: succeeded.length,
        percent: Math.round((succeeded.length / operations.length) * 1000) / 10,
      },
      statuses: { reached: documented.length - missing.length, documented: documented.length },
      requests: total(called.map(({ requests }) => requests)) + total(Object.values(seen.unmatched)),
    },
    never_called: operations.filter(({ requests }) => requests === 0).map(({ operation }) => operation),
    operations,
    unmatched: { ...seen.unmatched },
  }
}

function operationCoverage(
  { documented, ...operation }: DocumentedOperation,
  { operations }: ObservedResponses,
): CoveredOperation {
  const seen = operations[operation.operation] ?? {}
  const statuses = Object.keys(seen).map(Number)
  return {
    ...operation,
    requests: total(Object.values(seen)),
    statuses: { ...seen },
    missing: documented.filter((status) => !statuses.includes(status)),
    undocumented: statuses.filter((status) => !documented.includes(status)).sort(ascending),
  }
}

const total = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)

const ascending = (a: number, b: number): number => a - b
