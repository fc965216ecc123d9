/** Reads and checks fixtures files and berth.yaml. Changes nothing; `apply/apply.ts` applies them. */
import { readScenarios } from '../../agents/scripted/scenarios.ts'
import { StartupError } from '../../errors.ts'
import { loneSurrogatePath } from '../../http/json.ts'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { brokenText, ValidationError } from '../../runtime/validation/validation-error.ts'
import { type FixtureFault, normalizeFault } from '../faults/fault.ts'
import { readClock } from './clock.ts'
import { type FixturesDocument, readFixturesDocument } from './document.ts'
import { type FaultFixture, FixtureEntry, type Fixtures } from './fixtures.ts'
import { FixturesFile } from './model.ts'
import { checkReferences } from './references.ts'
import { type FileSource, type HostVariables, resolveFixture, type ValueSources } from './resolve.ts'

export { clockStart } from './clock.ts'
export { fixturesSchema } from './model.ts'

/** One file that is being read. */
interface FileContext extends ValueSources {
  readonly document: FixturesDocument
}

/** How each part is read, once its shape is known to be good, by its key at the top of a file. */
const SECTIONS: { [Part in keyof Fixtures]: (given: JsonReader, context: FileContext) => Fixtures[Part] } = {
  clock: (given, { document }) => [new FixtureEntry(document, given.path, 'clock', readClock(given))],
  accounts: (given, context) => each(given.entries(), context, resolveFixture.account),
  servers: (given, context) => each(given.entries(), context, resolveFixture.server),
  projects: (given, context) => each(given.entries(), context, resolveFixture.project),
  secrets: (given, context) => each(given.list(), context, resolveFixture.secrets),
  keys: (given, context) => each(given.entries(), context, resolveFixture.key),
  webhooks: (given, context) => each(given.entries(), context, resolveFixture.webhook),
  scenarios: (given, { document: { path: file } }) =>
    readScenarios(given).map((scenario) => ({ ...scenario, file })),
  faults: (given, { document }) =>
    given.list().map((one) => new FixtureEntry(document, one.path, 'fault', readFault(one))),
}

const NAMES = Object.keys(SECTIONS) as (keyof Fixtures)[]

/**
 * Reads fixtures files, without applying them.
 *
 * @param paths absolute paths, in order
 * @throws StartupError for the mistakes of the first file that has any, each with line, column and reason
 */
export function readFixtures(paths: readonly string[], environment: HostVariables): Fixtures {
  const fixtures = noFixtures()
  for (const path of paths)
    readInto(fixtures, { document: readFixturesDocument(path), file: path, environment })
  return checked(fixtures)
}

/** Names of the objects that a fixtures file declares, by kind. */
export interface FixtureNames {
  /** Those that projects imply included. */
  readonly servers: readonly string[]
  readonly keys: readonly string[]
  readonly webhooks: readonly string[]
}

/**
 * Reads the names alone, so that no variable, file or directory that the file refers to has to exist.
 *
 * @param path absolute
 * @throws StartupError for mistakes in the shape of the file, with line, column and reason
 */
export function readFixtureNames(path: string): FixtureNames {
  const document = readFixturesDocument(path)
  let file: FixturesFile
  try {
    file = validator.parse(document.root.value)
  } catch (error) {
    throw error instanceof ValidationError ? document.startupError(error) : error
  }
  const { servers = {}, projects = {}, keys = {}, webhooks = {} } = file
  const implied = Object.keys(projects).filter((name) => (projects[name]?.server ?? name) === name)
  return {
    servers: [...new Set([...Object.keys(servers), ...implied])],
    keys: Object.keys(keys),
    webhooks: Object.keys(webhooks),
  }
}

/**
 * Reads fixtures that a request carries. They refer to no file and no variable.
 *
 * @throws StartupError for the mistakes, each with its path
 */
export function readFixturesRequest(body: unknown): Fixtures {
  const document: FixturesDocument = {
    path: 'the request',
    root: new JsonReader(body),
    startupError: (mistake) => new StartupError(mistake.describe('body')),
  }
  const fixtures = noFixtures()
  readInto(fixtures, { document, file: null, environment: {} })
  return checked(fixtures)
}

function readInto(fixtures: Fixtures, context: FileContext): void {
  try {
    readFile(context, fixtures)
  } catch (error) {
    throw error instanceof ValidationError ? context.document.startupError(error) : error
  }
}

const noFixtures = (): Fixtures => ({
  clock: [],
  accounts: [],
  servers: [],
  projects: [],
  secrets: [],
  keys: [],
  webhooks: [],
  scenarios: [],
  faults: [],
})

/** Adds the servers that projects imply, and checks names and references. */
function checked(fixtures: Fixtures): Fixtures {
  const servers = [...fixtures.servers]
  for (const one of fixtures.projects) {
    if (one.value.server !== one.name || servers.some(({ name }) => name === one.name)) continue
    servers.push(one.with({ files: null, secrets: {} }))
  }
  const whole = { ...fixtures, servers }
  checkReferences(whole)
  return whole
}

const validator = new Validator(FixturesFile)

function readFile(context: FileContext, into: Fixtures): void {
  const { root } = context.document
  validator.parse(root.value)
  const broken = loneSurrogatePath(root.value)
  if (broken) throw brokenText(broken)
  for (const name of NAMES) {
    const part = root.field(name)
    if (part) (into[name] as unknown[]).push(...SECTIONS[name](part, context))
  }
}

/** Reads a fault: its account has a name, and no id yet. @throws ValidationError */
function readFault({ value, path }: JsonReader): FaultFixture {
  const { match, ...rest } = value as FixtureFault
  const { account, ...others } = match
  const fault = normalizeFault({ match: others, ...rest }, path)
  return account === undefined ? { fault } : { fault, account }
}

/** Reads each entry of a section. An entry's name is its key, or its index in a list. */
const each = <Value>(
  entries: readonly JsonReader[],
  context: FileContext,
  read: (given: JsonReader, sources: ValueSources) => Value,
): FixtureEntry<Value>[] =>
  entries.map(
    (one) => new FixtureEntry(context.document, one.path, String(one.path.at(-1)), read(one, context)),
  )

/** A fixtures document that refers to no file and no variable, as `POST /_berth/fixtures` takes it. */
export type FixturesRequest = Readonly<Record<string, unknown>>

/**
 * Returns fixtures that have been read as one document, with the content of files and the values of variables in it.
 *
 * @throws StartupError for the clock and for scenarios, which only a start sets
 */
export function toRequest(fixtures: Fixtures): FixturesRequest {
  const { accounts, servers, projects, secrets, keys, webhooks, faults, clock, scenarios } = fixtures
  const [clockEntry] = clock
  if (clockEntry)
    throw clockEntry.error(
      'the clock is set at a start alone: by "berth serve --fixtures", or "berth clock".',
    )
  const [scenario] = scenarios
  if (scenario) {
    throw new StartupError(
      `The fixtures file ${scenario.file} has scenarios, which take effect at a start alone. Set them with "berth scenarios set", or start with "berth serve --fixtures".`,
    )
  }
  return {
    accounts: byName(accounts, (value) => value),
    servers: byName(servers, withContents),
    projects: byName(projects, withContents),
    secrets: secrets.map(({ value }) => value),
    keys: byName(keys, (value) => value),
    webhooks: byName(webhooks, (value) => value),
    faults: faults.map(({ value: { fault, account } }) =>
      account === undefined ? fault : { ...fault, match: { ...fault.match, account } },
    ),
  }
}

const byName = <Value>(
  entries: readonly { readonly name: string; readonly value: Value }[],
  shape: (value: Value) => unknown,
): Record<string, unknown> => Object.fromEntries(entries.map(({ name, value }) => [name, shape(value)]))

/** Returns an entry with its files by path, and without those if it has none. */
function withContents<Value extends { readonly files: readonly FileSource[] | null }>({
  files,
  ...rest
}: Value) {
  if (files === null) return rest
  const contents = files.map(({ path, bytes }) => [path, { base64: Buffer.from(bytes()).toString('base64') }])
  return { ...rest, files: Object.fromEntries(contents) }
}
