import { readScenarios } from '../../agents/scripted/read.ts'
import { brokenPath } from '../../http/json.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { brokenText, ValidationError } from '../../runtime/validation/validation-error.ts'
import { type FixtureFault, normalFault } from '../faults/fault.ts'
import { readClock } from './clock.ts'
import { Declared } from './declared.ts'
import { type FixturesDocument, readDocument } from './document.ts'
import type { FaultFixture, Fixtures } from './fixtures.ts'
import { FixturesFile } from './model.ts'
import { checkReferences } from './references.ts'
import { type Elsewhere, type Environment, settle } from './settle.ts'

/** One file that is being read. */
interface Reading extends Elsewhere {
  readonly document: FixturesDocument
}

/** How each part is read, once its shape is known to be good, by its key at the top of a file. */
const PARTS: { [Part in keyof Fixtures]: (given: JsonReader, reading: Reading) => Fixtures[Part] } = {
  clock: (given, { document }) => [new Declared(document, given.path, 'clock', readClock(given))],
  accounts: (given, reading) => each(given.entries(), reading, settle.account),
  servers: (given, reading) => each(given.entries(), reading, settle.server),
  projects: (given, reading) => each(given.entries(), reading, settle.project),
  secrets: (given, reading) => each(given.list(), reading, settle.secrets),
  keys: (given, reading) => each(given.entries(), reading, settle.key),
  webhooks: (given, reading) => each(given.entries(), reading, settle.webhook),
  scenarios: (given, { file }) => readScenarios(given).map((scenario) => ({ ...scenario, file })),
  faults: (given, { document }) =>
    given.list().map((one) => new Declared(document, one.path, 'fault', readFault(one))),
}

const NAMES = Object.keys(PARTS) as (keyof Fixtures)[]

/**
 * Reads the files that say what there is at the start. Nothing is done with it yet.
 *
 * @param paths absolute paths, in the order in which they count
 * @throws StartupError for the mistakes of the first file that has any, each with line, column and reason
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
      throw error instanceof ValidationError ? document.refusal(error) : error
    }
  }
  checkReferences(fixtures)
  return fixtures
}

const validator = new Validator(FixturesFile)

function readFile(reading: Reading, into: Fixtures): void {
  const { given } = reading.document
  validator.parse(given.value)
  const broken = brokenPath(given.value)
  if (broken) throw brokenText(broken)
  for (const name of NAMES) {
    const part = given.field(name)
    if (part) (into[name] as unknown[]).push(...PARTS[name](part, reading))
  }
}

/** Reads a fault: its account has a name, and no id yet. @throws ValidationError */
function readFault({ value, path }: JsonReader): FaultFixture {
  const { match, ...rest } = value as FixtureFault
  const { account, ...others } = match
  const fault = normalFault({ match: others, ...rest }, path)
  return account === undefined ? { fault } : { fault, account }
}

/** Each of a part, by its key, or its number where it is a list. */
const each = <Value>(
  entries: readonly JsonReader[],
  reading: Reading,
  read: (given: JsonReader, elsewhere: Elsewhere) => Value,
): Declared<Value>[] =>
  entries.map((one) => new Declared(reading.document, one.path, String(one.path.at(-1)), read(one, reading)))
