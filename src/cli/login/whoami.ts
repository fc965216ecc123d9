import { Client } from '../client.ts'
import type { Print } from '../command.ts'
import { CommandError } from '../errors.ts'
import type { CredentialSource, InstanceConnection, InstanceOptions } from '../find-instance.ts'
import { facts } from '../output.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'
import { locateInstance, orOnlyInstance } from '../session.ts'
import { type Column, table } from '../table.ts'
import { readLogins } from './credentials.ts'

/** The scope of a credential; null if the instance does not report it. */
type KeyScope = 'account' | 'limited' | null

/** The instance and credential of commands, for `berth whoami --json`. */
export interface LoginIdentity {
  base_url: string
  /** The source of the credential. */
  credential_from: CredentialSource
  /** Null if unknown: the API does not report a key's account. */
  account_id: string | null
  key_id: string | null
  label: string | null
  /** Prefix and last four characters. */
  masked: string
  scope: KeyScope
  /** Ids; null if unknown. */
  allowed_server_ids: string[] | null
  allowed_project_ids: string[] | null
  /** Whether the instance accepts the credential; null if the instance could not be asked. */
  valid: boolean | null
  /** The stored sign-ins of this user. */
  logins: RememberedLogin[]
}

/** A stored sign-in, without secrets. */
interface RememberedLogin {
  base_url: string
  account_id: string
  key_id: string
  label: string
  created_at: string
  current: boolean
}

const SOURCES: Record<CredentialSource, string> = {
  flag: 'the flag --api-key',
  environment: 'BERTH_API_KEY',
  'data directory': 'the data directory of the instance',
  login: 'berth login',
}

const COLUMNS: Column<RememberedLogin>[] = [
  { heading: 'SIGNED IN TO', cell: ({ base_url }) => base_url },
  { heading: 'ACCOUNT', cell: ({ account_id }) => account_id },
  { heading: 'KEY', cell: ({ label }) => label },
  { heading: 'SINCE', cell: ({ created_at }) => created_at },
  { heading: 'CURRENT', cell: ({ current }) => (current ? 'yes' : '') },
]

/**
 * Prints the instance and credential that commands use here, and the stored sign-ins.
 *
 * @throws CommandError after printing, if the instance refuses the credential or cannot be asked
 */
export async function showIdentity(
  context: ProcessContext,
  options: InstanceOptions,
  print: Print,
): Promise<void> {
  const where = await orOnlyInstance(context, options, 'api')
  const instance = await locateInstance(context, where, 'api')
  const { known, failure } = await lookUpKey(instance)
  const identity: LoginIdentity = {
    base_url: instance.baseUrl,
    credential_from: instance.source,
    account_id: instance.login?.account_id ?? null,
    ...known,
    logins: listLogins(context),
  }
  await print(identity, (_, { out }) => identityText(out, identity))
  if (failure) throw failure
}

/** Lists the stored sign-ins, oldest first. */
export function listLogins({ env }: ProcessContext): RememberedLogin[] {
  const { current, instances } = readLogins(env)
  return [...instances].map(([base_url, { account_id, key_id, label, created_at }]) => ({
    base_url,
    account_id,
    key_id,
    label,
    created_at,
    current: base_url === current,
  }))
}

type KeyInfo = Omit<LoginIdentity, 'base_url' | 'credential_from' | 'account_id' | 'logins'>

/** Asks the instance about the credential. */
async function lookUpKey(instance: InstanceConnection): Promise<{ known: KeyInfo; failure?: CommandError }> {
  const { credential, login } = instance
  const here: KeyInfo = {
    key_id: login?.key_id ?? null,
    label: login?.label ?? null,
    masked: mask(credential),
    scope: null,
    allowed_server_ids: null,
    allowed_project_ids: null,
    valid: true,
  }
  try {
    const { keys } = await new Client(instance).call('keys.list')
    const matches = keys.filter(({ id, masked }) => (login ? id === login.key_id : masked === here.masked))
    const [key] = matches
    // Two keys may look the same when masked. An access token is not in the list.
    if (!key || matches.length > 1) return { known: { ...here, scope: 'account' } }
    const { id, label, allowed_server_ids, allowed_project_ids } = key
    return {
      known: { ...here, key_id: id, label, scope: 'account', allowed_server_ids, allowed_project_ids },
    }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    // A valid credential that may not list keys is limited.
    if (error.code === 'forbidden') return { known: { ...here, scope: 'limited' } }
    const isRefused = error.code === 'missing_or_invalid_api_key'
    return { known: { ...here, valid: isRefused ? false : null }, failure: error }
  }
}

/** Masks a credential as the instance does. */
const mask = (credential: string): string =>
  `${credential.startsWith('sk_live_') ? 'sk_live_' : ''}…${credential.length >= 16 ? credential.slice(-4) : ''}`

const SCOPE_TEXTS: Record<NonNullable<KeyScope>, string> = {
  account: 'the whole account',
  limited: 'some servers or projects; which ones a key of the whole account sees with "berth keys"',
}

function identityText(out: OutputStream, identity: LoginIdentity): string {
  const { base_url, credential_from, account_id, key_id, label, masked, scope, valid, logins } = identity
  const named = label === null ? masked : `${masked}, ${label} (${key_id})`
  const text = facts(out, [
    ['Instance', base_url],
    ['Key', valid ? named : `${named}: ${valid === false ? 'not accepted' : 'could not be checked'}`],
    ['Found in', SOURCES[credential_from]],
    ...(account_id === null ? [] : [['Account', account_id] as const]),
    ...(scope === null ? [] : [['Reaches', SCOPE_TEXTS[scope]] as const]),
  ])
  return logins.length === 0 ? text : `${text}\n${table(out, COLUMNS, logins)}`
}
