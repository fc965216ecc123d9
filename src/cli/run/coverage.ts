import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { StartupError } from '../../errors.ts'
import { type CoverageReport, report, type Seen } from './coverage-report.ts'

/** Counts the statuses of each operation's responses while a command runs. */
export class Coverage {
  readonly #path: string
  readonly #seen: Seen = { operations: new Map(), unmatched: new Map() }
  readonly #index = new OperationIndex(listOperations(API_OPERATIONS))

  /** @throws StartupError where the file cannot be written: better before the command than after */
  constructor(path: string) {
    this.#path = path
    this.#save('')
  }

  /** Counts a request with its response. */
  readonly observe = ({ method, url }: Request, { status }: Response): void => {
    const { pathname } = new URL(url)
    // The control API is how a test steers, not what it tests.
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

  /** Writes what was reached and what not. @returns the sums, for a person */
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

/** The coverage that goes to a file. @throws StartupError where that cannot be written */
export const coverageInto = (file: string, cwd: string): Coverage => new Coverage(resolve(cwd, file))

const summary = ({ summary: { operations, statuses } }: CoverageReport): string =>
  `reached ${operations.reached} of ${operations.documented} operations and ${statuses.reached} of ${statuses.documented} documented statuses`

function add(counts: Map<number, number>, status: number): void {
  counts.set(status, (counts.get(status) ?? 0) + 1)
}
