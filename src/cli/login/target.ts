import { UsageError } from '../../errors.ts'
import { CommandError } from '../errors.ts'
import { type ConnectionOptions, checkUrl, findBaseUrl } from '../instance.ts'
import type { Terminal } from '../terminal.ts'
import { type Login, type Logins, readLogins } from './credentials.ts'

/** An instance that this user is signed in to. */
export interface Known {
  baseUrl: string
  login: Login
}

/**
 * The address to sign in to: the given one, else `--base-url` or BERTH_BASE_URL, else the instance that runs on the
 * nearest data folder, else the current login's.
 *
 * @throws UsageError for an address that is none, CommandError where none is known
 */
export function targetOf(
  given: string | undefined,
  options: ConnectionOptions,
  terminal: Pick<Terminal, 'env' | 'cwd'>,
): string {
  const { baseUrl, folder } = findBaseUrl(given === undefined ? options : { baseUrl: given }, terminal)
  // A folder that is named has to have one.
  const isNamed = options.data !== undefined || Boolean(terminal.env.BERTH_DATA)
  const target = baseUrl ?? (isNamed ? null : readLogins(terminal.env).current)
  if (target !== null) return checkPlain(target)
  throw new CommandError(
    `No berth runs on ${folder}. Say which instance is meant: berth login http://127.0.0.1:4747`,
  )
}

/** What is kept of an instance: the given one, else the current one. @throws CommandError where there is none */
export function knownLogin(logins: Logins, given: string | undefined): Known {
  const { current, instances } = logins
  const baseUrl = given === undefined ? current : checkUrl(given)
  const login = baseUrl === null ? undefined : instances.get(baseUrl)
  if (baseUrl !== null && login) return { baseUrl, login }
  const known = [...instances.keys()]
  const others =
    known.length === 0 ? 'Nor are you to another.' : `You are to ${known.join(', ')}: name one of them.`
  throw new CommandError(
    baseUrl === null && known.length === 0
      ? 'You are signed in to no instance. Sign in with "berth login URL".'
      : `You are not signed in ${baseUrl === null ? 'to a current instance' : `to ${baseUrl}`}. ${others}`,
  )
}

/** An address is shown, kept and compared: it holds no password, and nothing that goes with one request alone. */
function checkPlain(baseUrl: string): string {
  const { username, password, search, hash } = new URL(baseUrl)
  if (`${username}${password}${search}${hash}` === '') return baseUrl
  throw new UsageError('The base URL must have no user, password, query or fragment in it.')
}
