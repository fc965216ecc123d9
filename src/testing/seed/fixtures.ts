import { readScenarios } from '../../agents/scripted/read.ts'
import type { FileScenario } from '../../agents/scripted/store.ts'
import { type Given, Mistake } from '../../contract/given.ts'
import { type ClockFixture, readClock } from './clock.ts'
import { Declared } from './declared.ts'
import { type FixturesDocument, readDocument } from './document.ts'
import { type FaultFixture, readFixtureFaults } from './faults.ts'
import { FixturesFile } from './model.ts'
import { checkReferences } from './references.ts'
import {
  type AccountFixture,
  type Elsewhere,
  type Environment,
  type KeyFixture,
  type ProjectFixture,
  type SecretsFixture,
  type ServerFixture,
  settle,
  type WebhookFixture,
} from './settle.ts'
import { check, wrong } from './shape.ts'

/** What fixtures files say, part by part; of several files it follows each other. */
export interface Fixtures {
  /** At most one. */
  readonly clock: readonly Declared<ClockFixture>[]
  readonly accounts: readonly Declared<AccountFixture>[]
  readonly servers: readonly Declared<ServerFixture>[]
  readonly projects: readonly Declared<ProjectFixture>[]
  /** Those that stand apart from their server or project. */
  readonly secrets: readonly Declared<SecretsFixture>[]
  readonly keys: readonly Declared<KeyFixture>[]
  readonly webhooks: readonly Declared<WebhookFixture>[]
  readonly scenarios: readonly FileScenario[]
  readonly faults: readonly Declared<FaultFixture>[]
}

/** One file that is being read. */
interface Reading extends Elsewhere {
  readonly document: FixturesDocument
}

/** How each part is read, once its shape is known to be good, by its key at the top of a file. */
const PARTS: { [Part in keyof Fixtures]: (given: Given, reading: Reading) => Fixtures[Part] } = {
  clock: (given, { document }) => [new Declared(document, given.place, 'clock', readClock(given))],
  accounts: (given, reading) => each(given.entries(), reading, settle.account),
  servers: (given, reading) => each(given.entries(), reading, settle.server),
  projects: (given, reading) => each(given.entries(), reading, settle.project),
  secrets: (given, reading) => each(given.list(), reading, settle.secrets),
  keys: (given, reading) => each(given.entries(), reading, settle.key),
  webhooks: (given, reading) => each(given.entries(), reading, settle.webhook),
  scenarios: (given, { file }) => readScenarios(given).map((scenario) => ({ ...scenario, file })),
  faults: (given, { document }) =>
    readFixtureFaults(given).map(([{ place }, fault]) => new Declared(document, place, 'fault', fault)),
}

/** Parts whose readers check all of them, with more to say than a shape. */
const BY_READER: ReadonlySet<keyof Fixtures> = new Set(['scenarios', 'faults'])

const NAMES = Object.keys(PARTS) as (keyof Fixtures)[]

/**
 * Reads the files that say what there is at the start. Nothing is done with it yet.
 *
 * @param paths absolute paths, in the order in which they count
 * @throws StartupError for the first mistake, with file, line, column and reason
 */
export function readFixtures(paths: readonly string[], environment: Environment): Fixtures {
  const fixtures: Fixtures = {
    clock: [],
    accounts: [],
    servers: [],
    projects: [],
    secrets: [],
    keys: [],
    webhooks: [],
    scenarios: [],
    faults: [],
  }
  for (const path of paths) {
    const document = readDocument(path)
    try {
      readFile({ document, file: path, environment }, fixtures)
    } catch (error) {
      throw error instanceof Mistake ? document.refusal(error) : error
    }
  }
  checkReferences(fixtures)
  return fixtures
}

function readFile(reading: Reading, into: Fixtures): void {
  const { given } = reading.document
  if (!given.isObject) throw wrong(given, FixturesFile)
  const fields = given.fields(['$schema', ...NAMES])
  for (const name of NAMES) {
    const part = fields[name]
    if (!part) continue
    if (!BY_READER.has(name)) check(part, FixturesFile.properties[name])
    ;(into[name] as unknown[]).push(...PARTS[name](part, reading))
  }
}

/** Each of a part, by its key, or its number where it is a list. */
const each = <Value>(
  entries: readonly Given[],
  reading: Reading,
  read: (given: Given, elsewhere: Elsewhere) => Value,
): Declared<Value>[] =>
  entries.map(
    (one) => new Declared(reading.document, one.place, String(one.place.at(-1)), read(one, reading)),
  )
