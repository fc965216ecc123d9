import { asc, eq, min } from 'drizzle-orm'
import { badRequest } from '../../errors.ts'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import type { Queries } from '../../storage/database.ts'
import type { ScenarioText } from './model.ts'
import type { ParsedScenario } from './read.ts'
import type { Scenario } from './scenario.ts'
import { scenarios } from './table.ts'

/** A scenario of a file. */
export interface FileScenario extends ParsedScenario {
  /** Absolute path of the file. */
  readonly file: string
}

/** A scenario in effect, and its source: `control`, or the path of a file. */
interface SourcedScenario {
  readonly source: string
  /** Of one that was added alone; null for all others. */
  readonly id: string | null
  readonly text: ScenarioText
}

/** A scenario that matches a goal, and the goal's values. */
interface MatchedScenario {
  readonly scenario: Scenario
  /** Its position among all, from 0. */
  readonly index: number
  /** `control`, or the path of its file. */
  readonly source: string
  readonly values: ReadonlyMap<string, string>
}

/** Loads the reader when it is first needed, which keeps it out of the start. */
const loadReader = () => import('./read.ts')

const readGiven = async (given: JsonReader): Promise<Scenario[]> =>
  (await loadReader()).readScenarios(given).map(({ scenario }) => scenario)

/**
 * The scripted agent's scenarios. Those that the control API has set survive a restart and precede those of files.
 */
export class ScenarioStore {
  readonly #queries: Queries
  readonly #files: readonly FileScenario[]
  /** Scenarios set by the control API, by their text, so each expression is compiled once. */
  #parsed = new Map<string, Scenario>()

  constructor(queries: Queries, files: readonly FileScenario[]) {
    this.#queries = queries
    this.#files = files
  }

  /** Lists all scenarios in the order in which they are tried. */
  list(): SourcedScenario[] {
    const set = this.#rows().map(({ id, scenario }) => ({ source: 'control', id, text: scenario }))
    return [...set, ...this.#files.map(({ file, text }) => ({ source: file, id: null, text }))]
  }

  /**
   * Adds a scenario before those that the control API has set.
   *
   * @throws ValidationError without changing anything
   */
  async add(given: JsonReader, id: string): Promise<void> {
    ;(await loadReader()).readScenario(given)
    this.#queries.transaction((transaction) => {
      const first =
        transaction
          .select({ at: min(scenarios.position) })
          .from(scenarios)
          .get()?.at ?? 0
      transaction
        .insert(scenarios)
        .values({ position: first - 1, id, scenario: given.value as ScenarioText })
        .run()
    })
  }

  /** Removes a scenario that was added alone. @returns whether there was one with this id */
  remove(id: string): boolean {
    const removed = this.#queries.delete(scenarios).where(eq(scenarios.id, id)).returning().all()
    return removed.length > 0
  }

  /**
   * Replaces the scenarios that the control API has set. One that stays keeps its id.
   *
   * @param expected those that it has set, as the caller knows them; undefined if it does not matter
   * @throws ValidationError without changing anything; BerthError 400 if others than the expected ones are set
   */
  async replace(given: JsonReader, expected?: readonly ScenarioText[]): Promise<void> {
    const read = (await loadReader()).readScenarios(given)
    this.#queries.transaction((transaction) => {
      if (expected !== undefined && !Bun.deepEquals(this.#listStored(), expected, true)) {
        throw badRequest(
          'The scenarios that were set are not those in "expected": another client has changed them. Nothing was changed. Read them again.',
        )
      }
      const before = this.#rows()
      transaction.delete(scenarios).run()
      for (const [position, { text }] of read.entries()) {
        const same = before.findIndex(({ scenario }) => Bun.deepEquals(scenario, text, true))
        const id = same < 0 ? null : (before.splice(same, 1)[0]?.id ?? null)
        transaction.insert(scenarios).values({ position, id, scenario: text }).run()
      }
    })
  }

  /** Removes the scenarios that the control API has set; those of files stay. */
  clear(): void {
    this.#queries.delete(scenarios).run()
  }

  /**
   * Returns the first scenario that a goal matches, or null.
   *
   * @param accountId the account whose goal it is; null for none
   * @param given scenarios to try in place of those that the control API has set
   * @throws ValidationError for a mistake in the given ones
   */
  async find(
    goal: string,
    accountId: string | null = null,
    given: JsonReader | null = null,
  ): Promise<MatchedScenario | null> {
    const set = given === null ? await this.#loadStored() : await readGiven(given)
    const all = [...set, ...this.#files.map(({ scenario }) => scenario)]
    for (const [index, scenario] of all.entries()) {
      const { matcher } = scenario
      const values =
        matcher.accountId === null || matcher.accountId === accountId ? matcher.match(goal) : null
      if (values === null) continue
      const source = this.#files[index - set.length]?.file ?? 'control'
      return { scenario, index, source, values: new Map([...values, ['goal', goal]]) }
    }
    return null
  }

  async #loadStored(): Promise<Scenario[]> {
    const set = this.#listStored()
    if (set.length === 0) return []
    const { readScenario } = await loadReader()
    const read = new Map<string, Scenario>()
    for (const text of set) {
      const key = JSON.stringify(text)
      read.set(key, this.#parsed.get(key) ?? readScenario(new JsonReader(text)))
    }
    this.#parsed = read
    return set.flatMap((text) => read.get(JSON.stringify(text)) ?? [])
  }

  #listStored(): ScenarioText[] {
    return this.#rows().map(({ scenario }) => scenario)
  }

  #rows() {
    return this.#queries.select().from(scenarios).orderBy(asc(scenarios.position)).all()
  }
}
