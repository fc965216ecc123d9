import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { OpenApiDocument } from '../../contract/openapi/model.ts'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { StartupError } from '../../errors.ts'

/** Counts the statuses of each operation's responses while a command runs. */
export class Coverage {
  readonly #path: string
  readonly #seen: ObservedResponses = { operations: new Map(), unmatched: new Map() }
  readonly #index = new OperationIndex(listOperations(API_OPERATIONS))

  /**
   * Creates the file, because a failure should occur before the command runs.
   *
   * @throws StartupError if the file cannot be written
   */
  constructor(path: string) {
    this.#path = path
    this.#save('')
  }

  /** Counts a request with its response. */
  readonly observe = ({ method, url }: Request, { status }: Response): void => {
    const { pathname } = new URL(url)
    // Tests use the control API, but do not test it.
    if (pathname === '/_berth' || pathname.startsWith('/_berth/')) return
    const operation = this.#index.match(method, pathname)
    if (operation === undefined) {
      add(this.#seen.unmatched, status)
      return
    }
    const statuses = this.#seen.operations.get(operation.id) ?? new Map<number, number>()
    this.#seen.operations.set(operation.id, statuses)
    add(statuses, status)
  }

  /**
   * Writes the coverage.
   *
   * @returns a summary for a person
   */
  async write(command: readonly string[]): Promise<string> {
    const { describeApi } = await import('../../instance/describe.ts')
    const written = report(this.#seen, await describeApi(), command)
    this.#save(`${JSON.stringify(written, null, 2)}\n`)
    return `${summary(written)}; ${this.#path} has the details`
  }

  #save(text: string): void {
    try {
      writeFileSync(this.#path, text)
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      throw new StartupError(`The coverage cannot be written: ${cause}. Name another file with --coverage.`)
    }
  }
}

/**
 * Returns a coverage that is written to a file.
 *
 * @throws StartupError if the file cannot be written
 */
export const createCoverage = (file: string, cwd: string): Coverage => new Coverage(resolve(cwd, file))

const summary = ({ summary: { operations, statuses } }: CoverageReport): string =>
  `reached ${operations.reached} of ${operations.documented} operations and ${statuses.reached} of ${statuses.documented} documented statuses`

function add(counts: Map<number, number>, status: number): void {
  counts.set(status, (counts.get(status) ?? 0) + 1)
}

/** Numbers of responses by status. */
interface ObservedResponses {
  /** By operation id. */
  operations: Map<string, Map<number, number>>
  /** Requests without an operation: an unknown path, or an unknown method of a path. */
  unmatched: Map<number, number>
}

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
interface CoverageReport {
  command: readonly string[]
  summary: { operations: Share; statuses: Share; requests: number }
  /** Ids of operations without a request. */
  never_called: string[]
  /** In the order of the OpenAPI document. */
  operations: CoveredOperation[]
  /** Number of responses by status, for requests without an operation. */
  unmatched: Record<string, number>
}

/** Compares the responses with the OpenAPI document. */
function report(
  seen: ObservedResponses,
  document: OpenApiDocument,
  command: readonly string[],
): CoverageReport {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) =>
      operationCoverage({ operation: operationId, method: method.toUpperCase(), path }, responses, seen),
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

function operationCoverage(
  operation: Pick<CoveredOperation, 'operation' | 'method' | 'path'>,
  responses: object,
  { operations }: ObservedResponses,
): CoveredOperation {
  const seen = operations.get(operation.operation) ?? new Map<number, number>()
  // `default` is for statuses that it does not list.
  const documented = Object.keys(responses)
    .filter((status) => status !== 'default')
    .map(Number)
    .sort(ascending)
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
