import { UsageError } from '../../errors.ts'
import { CommandError } from '../errors.ts'
import { findBaseUrl, type InstanceOptions, normalizeBaseUrl } from '../find-instance.ts'
import type { ProcessContext } from '../process-context.ts'
import { type Login, type Logins, readLogins } from './credentials.ts'

/** An instance that this user is signed in to. */
export interface KnownLogin {
  baseUrl: string
  login: Login
}

/**
 * Returns the address to sign in to: the given one, else `--base-url` or BERTH_BASE_URL, else the instance that runs
 * on the nearest data directory, else the current login's.
 *
 * @throws UsageError for an invalid address; CommandError if none is found
 */
export function findTarget(
  given: string | undefined,
  options: InstanceOptions,
  context: Pick<ProcessContext, 'env' | 'cwd'>,
): string {
  const { baseUrl, directory } = findBaseUrl(given === undefined ? options : { baseUrl: given }, context)
  // A directory that is named explicitly must have a running instance.
  const isNamed = options.data !== undefined || Boolean(context.env.BERTH_DATA)
  const target = baseUrl ?? (isNamed ? null : readLogins(context.env).current)
  if (target !== null) return checkInstanceUrl(target)
  throw new CommandError(
    `No berth runs on ${directory}. Say which instance is meant: berth login http://127.0.0.1:4747`,
  )
}

/**
 * Returns the stored sign-in of an instance, by default the current one.
 *
 * @throws CommandError if there is none
 */
export function findLogin(logins: Logins, given: string | undefined): KnownLogin {
  const { current, instances } = logins
  const baseUrl = given === undefined ? current : normalizeBaseUrl(given)
  const login = baseUrl === null ? undefined : instances.get(baseUrl)
  if (baseUrl !== null && login) return { baseUrl, login }
  const known = [...instances.keys()]
  throw new CommandError(baseUrl === null ? noCurrentMessage(known) : unknownLoginMessage(baseUrl, known))
}

const noCurrentMessage = (known: readonly string[]): string =>
  known.length === 0
    ? 'You are signed in to no instance. Sign in with "berth login URL".'
    : `None of the instances that you are signed in to is the current one. Name the one that is meant: ${known.join(', ')}.`

const unknownLoginMessage = (baseUrl: string, known: readonly string[]): string =>
  `You are not signed in to ${baseUrl}, ${known.length === 0 ? 'nor to another instance' : `but to ${known.join(', ')}`}.`

/**
 * Returns the address unless it contains a password or leads to a page: it is shown, stored and compared.
 *
 * @throws UsageError
 */
function checkInstanceUrl(baseUrl: string): string {
  const { origin, username, password, pathname, search, hash } = new URL(baseUrl)
  if (`${username}${password}${search}${hash}` !== '') {
    throw new UsageError('The base URL must have no user, password, query or fragment in it.')
  }
  if (pathname === '/') return baseUrl
  throw new UsageError(
    `The address of an instance has no path: ${pathname} leads to one of its pages. Run "berth login ${origin}".`,
  )
}
