import { StartupError } from '../../errors.ts'
import type { FileSource } from './files.ts'
import type { Fixtures } from './fixtures.ts'

/** A fixtures document that refers to no file and no variable, as `POST /_berth/fixtures` takes it. */
export type FixturesRequest = Readonly<Record<string, unknown>>

/**
 * Returns fixtures that have been read as one document, with the content of files and the values of variables in it.
 *
 * @throws StartupError for what only a start can do
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
