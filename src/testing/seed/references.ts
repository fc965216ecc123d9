import type { StartupError } from '../../errors.ts'
import type { FixtureEntry, Fixtures } from './fixtures.ts'

/** The name of the first account, even if no file mentions it. */
export const FIRST_ACCOUNT = 'default'

/** The sections whose entries have names. */
type Kind = 'accounts' | 'servers' | 'projects' | 'keys' | 'webhooks'

const KINDS: readonly Kind[] = ['accounts', 'servers', 'projects', 'keys', 'webhooks']

/** The singular of each section's name. */
const ONE: Readonly<Record<Kind, string>> = {
  accounts: 'account',
  servers: 'server',
  projects: 'project',
  keys: 'key',
  webhooks: 'webhook',
}

/**
 * Checks that names are unique and references exist, and that no entry has fields that exclude each other.
 *
 * @throws StartupError for the first mistake, with its position
 */
export function checkReferences(fixtures: Fixtures): void {
  for (const kind of KINDS) checkNames(fixtures[kind], ONE[kind])
  const [, second] = fixtures.clock
  if (second) throw second.error('another file has a clock already; there is one.')
  const accountOf = (declared: FixtureEntry<{ account?: string }>): string => {
    const { account = FIRST_ACCOUNT } = declared.value
    return account === FIRST_ACCOUNT
      ? account
      : findOrThrow(fixtures, 'accounts', account, declared, 'account').name
  }
  for (const one of fixtures.accounts) checkAccount(one)
  for (const one of [...fixtures.servers, ...fixtures.webhooks]) accountOf(one)
  for (const one of fixtures.webhooks) checkDestination(one)
  for (const one of fixtures.projects) checkProject(one, fixtures)
  for (const one of fixtures.secrets) checkSecrets(one, fixtures)
  checkSecretsOnce(fixtures)
  for (const one of fixtures.keys) checkKey(one, fixtures, accountOf)
  for (const one of fixtures.faults) {
    const { account = FIRST_ACCOUNT } = one.value
    if (account !== FIRST_ACCOUNT) findOrThrow(fixtures, 'accounts', account, one, 'match', 'account')
  }
  checkValues([...fixtures.accounts, ...fixtures.keys])
}

function checkNames(all: readonly FixtureEntry<unknown>[], what: string): void {
  const seen = new Map<string, FixtureEntry<unknown>>()
  for (const one of all) {
    const before = seen.get(one.name)
    if (before) throw one.error(`the file ${before.file} has a ${what} of this name already.`)
    seen.set(one.name, one)
  }
}

/**
 * Returns the entry that a name refers to.
 *
 * @param inner position of the reference within the entry
 */
function findOrThrow<Part extends Kind>(
  fixtures: Fixtures,
  kind: Part,
  name: string,
  by: FixtureEntry<unknown>,
  ...inner: readonly (string | number)[]
): Fixtures[Part][number] {
  const one = fixtures[kind].find((candidate) => candidate.name === name)
  if (one) return one
  const names = fixtures[kind].map((candidate) => candidate.name)
  if (kind === 'accounts') names.unshift(FIRST_ACCOUNT)
  const known = names.length === 0 ? `no ${kind} at all` : [...new Set(names)].join(', ')
  throw by.error(`there is no ${ONE[kind]} "${name}" in the fixtures; there is ${known}.`, ...inner)
}

function checkAccount(one: FixtureEntry<Fixtures['accounts'][number]['value']>): void {
  if (one.name === FIRST_ACCOUNT && one.value.key !== undefined) {
    throw one.error(
      'the first key of the first account is given with --api-key; others stand below "keys".',
      'key',
    )
  }
}

function checkDestination(one: FixtureEntry<Fixtures['webhooks'][number]['value']>): void {
  const { url, inbox } = one.value
  if (url !== undefined && inbox !== undefined) {
    throw one.error('its events go to a URL or to an inbox: give one of them.', 'inbox')
  }
  if (url === undefined && inbox === undefined) throw one.error('expected a "url" or an "inbox".')
}

function checkProject(one: FixtureEntry<Fixtures['projects'][number]['value']>, fixtures: Fixtures): void {
  const { server, template, source, files, directory, until } = one.value
  findOrThrow(fixtures, 'servers', server, one, 'server')
  const given = Object.entries({ template, source, files, directory }).filter(([, value]) => value != null)
  const [first, second] = given.map(([name]) => name)
  if (first && second) {
    throw one.error(
      `its code comes from "${first}" already: give one of template, source, files and directory.`,
      second,
    )
  }
  const hasCode = first !== undefined && first !== 'directory' && source?.type !== 'blank'
  if (!hasCode && until !== undefined && until !== 'nothing') {
    throw one.error('a project without code is not brought up: there is nothing to wait for.', 'until')
  }
}

function checkSecrets(one: FixtureEntry<Fixtures['secrets'][number]['value']>, fixtures: Fixtures): void {
  const { server, project } = one.value
  if (server !== undefined && project !== undefined) {
    throw one.error('it is of a server or of a project: give one of them.', 'project')
  }
  if (server !== undefined) findOrThrow(fixtures, 'servers', server, one, 'server')
  else if (project !== undefined) findOrThrow(fixtures, 'projects', project, one, 'project')
  else throw one.error('expected a server or a project that they are of.')
}

/** Checks that no variable has two values. */
function checkSecretsOnce({ servers, projects, secrets }: Fixtures): void {
  const seen = new Set<string>()
  const note = (of: string, one: FixtureEntry<unknown>, names: object, field: string): void => {
    for (const name of Object.keys(names)) {
      const key = `${of} ${name}`
      if (seen.has(key)) throw one.error('this variable has a value already.', field, name)
      seen.add(key)
    }
  }
  for (const one of servers) note(`server ${one.name}`, one, one.value.secrets, 'secrets')
  for (const one of projects) note(`project ${one.name}`, one, one.value.secrets, 'secrets')
  for (const one of secrets) {
    const { server, project, values } = one.value
    note(server === undefined ? `project ${project}` : `server ${server}`, one, values, 'values')
  }
}

function checkKey(
  one: FixtureEntry<Fixtures['keys'][number]['value']>,
  fixtures: Fixtures,
  accountOf: (declared: FixtureEntry<{ account?: string }>) => string,
): void {
  const account = accountOf(one)
  const own = (
    server: FixtureEntry<{ account?: string }>,
    what: string,
    ...inner: (string | number)[]
  ): void => {
    if (accountOf(server) === account) return
    throw one.error(
      `the ${what} is of the account "${accountOf(server)}" and the key of "${account}", which it cannot reach beyond.`,
      ...inner,
    )
  }
  for (const [index, name] of (one.value.servers ?? []).entries()) {
    own(findOrThrow(fixtures, 'servers', name, one, 'servers', index), 'server', 'servers', index)
  }
  for (const [index, name] of (one.value.projects ?? []).entries()) {
    const { value } = findOrThrow(fixtures, 'projects', name, one, 'projects', index)
    own(findOrThrow(fixtures, 'servers', value.server, one), 'project', 'projects', index)
  }
}

/** Checks that no two entries have the same key. */
function checkValues(all: readonly FixtureEntry<{ key?: string }>[]): void {
  const seen = new Set<string>()
  for (const one of all) {
    const { key } = one.value
    if (key === undefined) continue
    if (seen.has(key)) throw duplicateKey(one)
    seen.add(key)
  }
}

const duplicateKey = (one: FixtureEntry<unknown>): StartupError =>
  one.error('another entry has the same key; each needs its own.', 'key')
