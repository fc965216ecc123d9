import { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import {
  type ConnectionOptions,
  type CredentialSource,
  findInstance,
  type InstanceConnection,
} from '../find-instance.ts'
import { type Column, facts, table } from '../output.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'
import type { Print } from '../runner.ts'
import { readLogins } from './credentials.ts'

/** What a credential reaches; null where its instance does not say. */
export type KeyScope = 'account' | 'limited' | null

/** Whom commands act for, as `berth whoami --json` prints it. */
export interface Identity {
  base_url: string
  /** Where the credential was found. */
  credential_from: CredentialSource
  /** Null where it is not known: the API gives it for no key. */
  account_id: string | null
  key_id: string | null
  label: string | null
  /** Its prefix and its last four characters. */
  masked: string
  scope: KeyScope
  /** Ids; null where they are not known. */
  allowed_server_ids: string[] | null
  allowed_project_ids: string[] | null
  /** Whether the instance takes it; null where it could not be asked. */
  valid: boolean | null
  /** The instances that this user is signed in to. */
  logins: RememberedLogin[]
}

/** A sign-in that is remembered; nothing secret. */
export interface RememberedLogin {
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
 * Prints whom commands act for here, and which instances are remembered.
 *
 * @throws CommandError where the instance does not take the credential or cannot be asked: what is known here was printed then
 */
export async function showIdentity(
  context: ProcessContext,
  options: ConnectionOptions,
  print: Print,
): Promise<void> {
  const instance = findInstance(options, context)
  const { known, failure } = await lookUpKey(instance)
  const identity: Identity = {
    base_url: instance.baseUrl,
    credential_from: instance.source,
    account_id: instance.login?.account_id ?? null,
    ...known,
    logins: listLogins(context),
  }
  await print(identity, (_, { out }) => identityText(out, identity))
  if (failure) throw failure
}

/** The sign-ins that are remembered, the first one first. */
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

type KeyInfo = Omit<Identity, 'base_url' | 'credential_from' | 'account_id' | 'logins'>

/** What the instance says of the credential. */
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
    const alike = keys.filter(({ id, masked }) => (login ? id === login.key_id : masked === here.masked))
    const [key] = alike
    // Of two that look the same nobody says which one it is. An access token is none of them.
    if (!key || alike.length > 1) return { known: { ...here, scope: 'account' } }
    const { id, label, allowed_server_ids, allowed_project_ids } = key
    return {
      known: { ...here, key_id: id, label, scope: 'account', allowed_server_ids, allowed_project_ids },
    }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    // What may not list keys is valid, and limited.
    if (error.code === 'forbidden') return { known: { ...here, scope: 'limited' } }
    const isRefused = error.code === 'missing_or_invalid_api_key'
    return { known: { ...here, valid: isRefused ? false : null }, failure: error }
  }
}

/** As the instance shows keys. */
const mask = (credential: string): string =>
  `${credential.startsWith('sk_live_') ? 'sk_live_' : ''}…${credential.length >= 16 ? credential.slice(-4) : ''}`

const SCOPE_TEXTS: Record<NonNullable<KeyScope>, string> = {
  account: 'the whole account',
  limited: 'some servers or projects; which ones a key of the whole account sees with "berth keys"',
}

function identityText(out: OutputStream, identity: Identity): string {
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
