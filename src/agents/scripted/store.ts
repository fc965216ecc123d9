import { asc } from 'drizzle-orm'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import type { Queries } from '../../storage/database.ts'
import type { ScenarioText } from './model.ts'
import type { ReadScenario } from './read.ts'
import type { Scenario } from './scenario.ts'
import { scenarios } from './table.ts'

/** A scenario of a file. */
export interface FileScenario extends ReadScenario {
  /** Absolute path of the file. */
  readonly file: string
}

/** A scenario in effect, and its source: `control`, or the path of a file. */
export interface SourcedScenario {
  readonly source: string
  readonly text: ScenarioText
}

/** A scenario for a goal, with the values that the goal gives. */
export interface MatchedScenario {
  readonly scenario: Scenario
  readonly values: ReadonlyMap<string, string>
}

/** Loaded when there is a scenario to read: a start does not need it. */
const reader = () => import('./read.ts')

/**
 * The scripted agent's scenarios. Those that the control API has set survive a restart and precede those of files.
 */
export class ScenarioStore {
  readonly #queries: Queries
  readonly #files: readonly FileScenario[]
  /** Scenarios set by the control API, by their text, so each expression is compiled once. */
  #read = new Map<string, Scenario>()

  constructor(queries: Queries, files: readonly FileScenario[]) {
    this.#queries = queries
    this.#files = files
  }

  /** All, in the order in which they are tried. */
  list(): SourcedScenario[] {
    const set = this.#set().map((text) => ({ source: 'control', text }))
    return [...set, ...this.#files.map(({ file, text }) => ({ source: file, text }))]
  }

  /**
   * Replaces the scenarios that the control API has set.
   *
   * @throws ValidationError without changing anything
   */
  async replace(given: JsonReader): Promise<void> {
    const read = (await reader()).readScenarios(given)
    this.#queries.transaction((transaction) => {
      transaction.delete(scenarios).run()
      for (const [position, { text }] of read.entries()) {
        transaction.insert(scenarios).values({ position, scenario: text }).run()
      }
    })
  }

  /** Removes the scenarios that the control API has set; those of files stay. */
  clear(): void {
    this.#queries.delete(scenarios).run()
  }

  /** Returns the first scenario that a goal matches, or null. */
  async find(goal: string): Promise<MatchedScenario | null> {
    for (const scenario of await this.#all()) {
      const values = scenario.matcher.match(goal)
      if (values) return { scenario, values: new Map([...values, ['goal', goal]]) }
    }
    return null
  }

  async #all(): Promise<Scenario[]> {
    const files = this.#files.map(({ scenario }) => scenario)
    const set = this.#set()
    if (set.length === 0) return files
    const { readScenario } = await reader()
    const read = new Map<string, Scenario>()
    for (const text of set) {
      const key = JSON.stringify(text)
      read.set(key, this.#read.get(key) ?? readScenario(new JsonReader(text)))
    }
    this.#read = read
    return [...read.values(), ...files]
  }

  #set(): ScenarioText[] {
    const rows = this.#queries.select().from(scenarios).orderBy(asc(scenarios.position)).all()
    return rows.map(({ scenario }) => scenario)
  }
}
