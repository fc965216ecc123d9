import type { StartupError } from '../../errors.ts'
import type { Declared } from './declared.ts'
import type { Fixtures } from './fixtures.ts'

/** The first account goes by this name, whether a file says anything of it or not. */
export const FIRST_ACCOUNT = 'default'

/** What can be named. */
type Kind = 'accounts' | 'servers' | 'projects' | 'keys' | 'webhooks'

const KINDS: readonly Kind[] = ['accounts', 'servers', 'projects', 'keys', 'webhooks']

/** What one is called in a sentence. */
const ONE: Readonly<Record<Kind, string>> = {
  accounts: 'account',
  servers: 'server',
  projects: 'project',
  keys: 'key',
  webhooks: 'webhook',
}

/**
 * Refuses names that are given twice or to nothing, and what cannot stand beside each other.
 *
 * @throws StartupError for the first, with where it stands
 */
export function checkReferences(fixtures: Fixtures): void {
  for (const kind of KINDS) checkNames(fixtures[kind], ONE[kind])
  const [, second] = fixtures.clock
  if (second) throw second.refusal('another file has a clock already; there is one.')
  const accountOf = (declared: Declared<{ account?: string }>): string => {
    const { account = FIRST_ACCOUNT } = declared.value
    return account === FIRST_ACCOUNT
      ? account
      : found(fixtures, 'accounts', account, declared, 'account').name
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
    if (account !== FIRST_ACCOUNT) found(fixtures, 'accounts', account, one, 'match', 'account')
  }
  checkValues([...fixtures.accounts, ...fixtures.keys])
}

function checkNames(all: readonly Declared<unknown>[], what: string): void {
  const seen = new Map<string, Declared<unknown>>()
  for (const one of all) {
    const before = seen.get(one.name)
    if (before) throw one.refusal(`the file ${before.file} has a ${what} of this name already.`)
    seen.set(one.name, one)
  }
}

/** What a name stands for. @param inner where the name stands */
function found<Part extends Kind>(
  fixtures: Fixtures,
  kind: Part,
  name: string,
  by: Declared<unknown>,
  ...inner: readonly (string | number)[]
): Fixtures[Part][number] {
  const one = fixtures[kind].find((candidate) => candidate.name === name)
  if (one) return one
  const names = fixtures[kind].map((candidate) => candidate.name)
  if (kind === 'accounts') names.unshift(FIRST_ACCOUNT)
  const known = names.length === 0 ? `no ${kind} at all` : [...new Set(names)].join(', ')
  throw by.refusal(`there is no ${ONE[kind]} "${name}" in the fixtures; there is ${known}.`, ...inner)
}

function checkAccount(one: Declared<Fixtures['accounts'][number]['value']>): void {
  if (one.name === FIRST_ACCOUNT && one.value.key !== undefined) {
    throw one.refusal(
      'the first key of the first account is given with --api-key; others stand below "keys".',
      'key',
    )
  }
}

function checkDestination(one: Declared<Fixtures['webhooks'][number]['value']>): void {
  const { url, inbox } = one.value
  if (url !== undefined && inbox !== undefined) {
    throw one.refusal('its events go to a URL or to an inbox: give one of them.', 'inbox')
  }
  if (url === undefined && inbox === undefined) throw one.refusal('expected a "url" or an "inbox".')
}

function checkProject(one: Declared<Fixtures['projects'][number]['value']>, fixtures: Fixtures): void {
  const { server, template, source, files, until } = one.value
  found(fixtures, 'servers', server, one, 'server')
  const given = Object.entries({ template, source, files }).filter(([, value]) => value != null)
  const [first, second] = given.map(([name]) => name)
  if (first && second) {
    throw one.refusal(
      `its code comes from "${first}" already: give one of template, source and files.`,
      second,
    )
  }
  const hasCode = first !== undefined && source?.type !== 'blank'
  if (!hasCode && until !== undefined && until !== 'nothing') {
    throw one.refusal('a project without code is not brought up: there is nothing to wait for.', 'until')
  }
}

function checkSecrets(one: Declared<Fixtures['secrets'][number]['value']>, fixtures: Fixtures): void {
  const { server, project } = one.value
  if (server !== undefined && project !== undefined) {
    throw one.refusal('it is of a server or of a project: give one of them.', 'project')
  }
  if (server !== undefined) found(fixtures, 'servers', server, one, 'server')
  else if (project !== undefined) found(fixtures, 'projects', project, one, 'project')
  else throw one.refusal('expected a server or a project that they are of.')
}

/** A variable that has two values would have whichever came last. */
function checkSecretsOnce({ servers, projects, secrets }: Fixtures): void {
  const seen = new Set<string>()
  const note = (of: string, one: Declared<unknown>, names: object, field: string): void => {
    for (const name of Object.keys(names)) {
      const key = `${of} ${name}`
      if (seen.has(key)) throw one.refusal('this variable has a value already.', field, name)
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
  one: Declared<Fixtures['keys'][number]['value']>,
  fixtures: Fixtures,
  accountOf: (declared: Declared<{ account?: string }>) => string,
): void {
  const account = accountOf(one)
  const own = (server: Declared<{ account?: string }>, what: string, ...inner: (string | number)[]): void => {
    if (accountOf(server) === account) return
    throw one.refusal(
      `the ${what} is of the account "${accountOf(server)}" and the key of "${account}", which it cannot reach beyond.`,
      ...inner,
    )
  }
  for (const [index, name] of (one.value.servers ?? []).entries()) {
    own(found(fixtures, 'servers', name, one, 'servers', index), 'server', 'servers', index)
  }
  for (const [index, name] of (one.value.projects ?? []).entries()) {
    const { value } = found(fixtures, 'projects', name, one, 'projects', index)
    own(found(fixtures, 'servers', value.server, one), 'project', 'projects', index)
  }
}

/** Whoever holds a key is one caller. */
function checkValues(all: readonly Declared<{ key?: string }>[]): void {
  const seen = new Set<string>()
  for (const one of all) {
    const { key } = one.value
    if (key === undefined) continue
    if (seen.has(key)) throw refusedTwice(one)
    seen.add(key)
  }
}

const refusedTwice = (one: Declared<unknown>): StartupError =>
  one.refusal('another entry has the same key; each needs its own.', 'key')
