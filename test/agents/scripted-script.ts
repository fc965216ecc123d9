import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ScriptedAgent } from '../../src/agents/scripted/agent.ts'
import { ScenarioTexts } from '../../src/agents/scripted/model.ts'
import { readScenarios } from '../../src/agents/scripted/read.ts'
import { ScenarioStore } from '../../src/agents/scripted/store.ts'
import { JsonReader } from '../../src/runtime/validation/json-reader.ts'
import { Validator } from '../../src/runtime/validation/validate.ts'
import { type Database, openDatabase } from '../../src/storage/database.ts'
import { MovedClock } from '../support/clock.ts'

/** Scripted agents that go by one clock. */
export class Scripts implements Disposable {
  readonly clock = new MovedClock()
  readonly #folder = mkdtempSync(join(tmpdir(), 'berth-scripts-'))
  readonly #database: Database = openDatabase(join(this.#folder, 'berth.db'))

  /** One with scenarios of a file. */
  agent(...scenarios: unknown[]): ScriptedAgent {
    const read = readScenarios(new JsonReader(new Validator(ScenarioTexts).parse(scenarios), ['scenarios']))
    const files = read.map((scenario) => ({ ...scenario, file: '/scenarios.yaml' }))
    return new ScriptedAgent({
      scenarios: new ScenarioStore(this.#database.queries, files),
      clock: this.clock,
    })
  }

  /** One that carries out steps whatever its goal is. */
  does(...steps: unknown[]): ScriptedAgent {
    return this.agent({ name: 'script', match: { glob: '*' }, steps })
  }

  [Symbol.dispose](): void {
    this.#database.close()
    rmSync(this.#folder, { recursive: true })
  }
}
