import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import { codeOf } from '../runtime/error-info.ts'
import { isObject } from '../runtime/is-object.ts'
import { CommandError } from './errors.ts'
import { isHeld } from './instances/directory-lock.ts'
import { type Login, readLogins } from './login/credentials.ts'
import type { ProcessContext } from './process-context.ts'

/** The options that name the instance of a command. */
export interface InstanceOptions {
  baseUrl?: string
  apiKey?: string
  adminToken?: string
  data?: string
}

/** A running berth and the credential for it. */
export interface InstanceConnection {
  /** Without a trailing slash. */
  baseUrl: string
  /** The API key, or the admin token for the control API. */
  credential: string
  /** The source of the credential. */
  source: CredentialSource
  /** The stored sign-in, if it is the source. */
  login?: Login
}

/** The sources of a credential. The first one that has one counts. */
export type CredentialSource = 'flag' | 'environment' | 'data directory' | 'login'

/** The API, with an API key, or the control API, with the admin token. */
export type ApiKind = 'api' | 'control'

/** The sources of each API's credential, and its name for people. */
const CREDENTIALS = {
  api: { option: 'apiKey', variable: 'BERTH_API_KEY', field: 'api_key', what: 'API key', flag: '--api-key' },
  control: {
    option: 'adminToken',
    variable: 'BERTH_ADMIN_TOKEN',
    field: 'admin_token',
    what: 'admin token',
    flag: '--admin-token',
  },
} as const

/** Error: no instance runs on the data directory of a command, and no other source names one. */
export class NoInstanceError extends CommandError {
  /** What there is none of, as a sentence. */
  readonly missing: string
  /** What to do, as the predicate of a sentence. */
  readonly remedy: string

  constructor(missing: string, remedy: string) {
    super(`${missing} ${remedy.slice(0, 1).toUpperCase()}${remedy.slice(1)}`)
    this.missing = missing
    this.remedy = remedy
  }
}

/** Error: there is no credential for the address of a command. */
export class NoCredentialError extends CommandError {
  readonly baseUrl: string

  constructor(baseUrl: string, message: string) {
    super(message)
    this.baseUrl = baseUrl
  }
}

/** Matches what an HTTP header can carry as a credential. */
const CREDENTIAL = /^[\x21-\x7e]+$/

/**
 * Finds the instance of a command: `--base-url` and `--api-key` (`--admin-token`), else BERTH_BASE_URL and
 * BERTH_API_KEY (BERTH_ADMIN_TOKEN), else the instance that runs on the data directory, else, for the API, the one of
 * `berth login`. A directory's credentials are sent to the directory's own instance only, and the key of a login to
 * its own URL, never to an address from another source.
 *
 * @throws UsageError for an invalid address or credential; NoInstanceError, CommandError if no instance or key is found
 */
export function findInstance(
  options: InstanceOptions,
  { env, cwd }: Pick<ProcessContext, 'env' | 'cwd'>,
  api: ApiKind = 'api',
): InstanceConnection {
  const { option, variable, field, what, flag } = CREDENTIALS[api]
  const { directory, directoryUrl, baseUrl, connectionEnv } = findBaseUrl(options, { env, cwd })
  const flagged = options[option]
  const credential = flagged ?? (connectionEnv[variable] || undefined)
  if (credential !== undefined && !CREDENTIAL.test(credential))
    throw new UsageError(
      `${flagged === undefined ? variable : flag} holds no ${what}: it has spaces, line breaks or other characters that none has. Copy the whole ${what}; one shown with "…" is shortened.`,
    )
  if (baseUrl === undefined) {
    // A directory that is named explicitly must have a running instance.
    const isNamed = options.data !== undefined || Boolean(env.BERTH_DATA)
    const isOpened = api === 'control' && credential !== undefined
    const login = isNamed || isOpened ? null : currentLogin(env)
    if (credential !== undefined && !isNamed && api === 'api') {
      throw new CommandError(keyWithoutAddressMessage(directory, login, flagged !== undefined))
    }
    if (login && api === 'api') return login
    if (login) {
      throw new CommandError(
        `No berth runs on ${directory}, and the login at ${login.baseUrl} does not open this: it takes the admin token of the instance. Run this in the directory where it was started, or name that with --data, or give --base-url and --admin-token.`,
      )
    }
    // The variable may still be set from earlier work.
    const named = options.data === undefined && env.BERTH_DATA ? ', which BERTH_DATA names' : ''
    throw new NoInstanceError(
      `No berth runs on ${directory}${named}.`,
      `start one with "berth serve", or name one with --base-url or --data${api === 'api' && !isNamed ? `, or sign in to one with "berth login URL"${loginsHint(env)}` : ''}.`,
    )
  }
  if (credential !== undefined) {
    return { baseUrl, credential, source: flagged === undefined ? 'environment' : 'flag' }
  }
  const kept = readJson(join(directory, 'credentials.json'))?.[field]
  if (baseUrl === directoryUrl && typeof kept === 'string') {
    return { baseUrl, credential: kept, source: 'data directory' }
  }
  const login = api === 'api' ? readLogins(env).instances.get(baseUrl) : undefined
  if (login) return { baseUrl, credential: login.api_key, source: 'login', login }
  throw new NoCredentialError(
    baseUrl,
    `No ${what} for ${baseUrl}. Give it with ${flag} or ${variable}${api === 'api' ? `, or run "berth login ${baseUrl}"` : ', or name its data directory with --data: "berth list" shows it'}.`,
  )
}

/**
 * Returns the message for a key without an address. The key may be for any instance, so it is sent to none that was
 * signed in to.
 */
function keyWithoutAddressMessage(
  directory: string,
  login: InstanceConnection | null,
  isFlag: boolean,
): string {
  const [given, address, remedy] = isFlag
    ? ['--api-key', '--base-url', 'leave it out']
    : ['BERTH_API_KEY', 'BERTH_BASE_URL or --base-url', 'unset it']
  const unused = login ? ` With it the login at ${login.baseUrl} is not used: to use that, ${remedy}.` : ''
  return `No berth runs on ${directory}, and ${given} does not say which instance it is for. Name that with ${address}.${unused}`
}

/** Returns the current login: the last one, or the one chosen with `--switch`. */
function currentLogin(env: ProcessContext['env']): InstanceConnection | null {
  const { current, instances } = readLogins(env)
  const login = current === null ? undefined : instances.get(current)
  if (current === null || !login) return null
  return { baseUrl: current, credential: login.api_key, source: 'login', login }
}

/** Returns the part of a message that lists the logins to choose from. */
function loginsHint(env: ProcessContext['env']): string {
  const urls = [...readLogins(env).instances.keys()]
  return urls.length === 0
    ? ''
    : `. You are signed in to ${urls.join(', ')}: choose with "berth login --switch URL"`
}

/** The address of an instance, as far as it is known. */
interface InstanceAddress {
  /** The data directory of the command. */
  directory: string
  /** Address of the instance that runs on the directory. */
  directoryUrl: string | undefined
  /** Address to use, without a trailing slash; undefined if none is given and none runs. */
  baseUrl: string | undefined
  /** The environment variables that apply. */
  connectionEnv: Record<string, string | undefined>
}

/**
 * Finds only the address of an instance: `--base-url`, else BERTH_BASE_URL, else that of the data directory's
 * instance.
 */
export function findBaseUrl(
  options: InstanceOptions,
  { env, cwd }: Pick<ProcessContext, 'env' | 'cwd'>,
): InstanceAddress {
  const directory = findDataDirectory(options.data, env, cwd)
  const isNamed = options.data !== undefined || Boolean(env.BERTH_DATA)
  const directoryUrl = addressIn(directory, isNamed)
  // A flag beats the environment: with --data, the variables are for another instance.
  const connectionEnv = options.data === undefined ? env : {}
  const given = options.baseUrl ?? connectionEnv.BERTH_BASE_URL
  const baseUrl =
    given === undefined ? directoryUrl : knownAddress(normalizeBaseUrl(given), directoryUrl, env)
  return { directory, directoryUrl, baseUrl, connectionEnv }
}

/**
 * Returns the address of the instance of a data directory. In one that nobody has named it counts only while a berth runs
 * there, since a person who enters a directory does not vouch for what is in it.
 */
function addressIn(directory: string, isNamed: boolean): string | undefined {
  const { base_url: url, pid } = readJson(join(directory, 'instance.json')) ?? {}
  if (typeof url !== 'string') return undefined
  return isNamed || isHeld(directory, Number(pid)) ? trimSlash(url) : undefined
}

/**
 * Returns the address at 127.0.0.1 for one at localhost, if that is known: of the data directory or of a login. Its key
 * then goes to 127.0.0.1, where it belongs, and not to where the name leads.
 */
function knownAddress(baseUrl: string, directoryUrl: string | undefined, env: ProcessContext['env']): string {
  const url = new URL(baseUrl)
  if (url.hostname !== 'localhost') return baseUrl
  url.hostname = '127.0.0.1'
  const numeric = trimSlash(url.href)
  if (numeric === directoryUrl) return numeric
  const { instances } = readLogins(env)
  return instances.has(numeric) && !instances.has(baseUrl) ? numeric : baseUrl
}

/**
 * Returns the data directory of a command: `--data`, else BERTH_DATA, else `.berth` in the working directory or in
 * the nearest parent that has one.
 */
export function findDataDirectory(
  given: string | undefined,
  env: Record<string, string | undefined>,
  cwd: string,
): string {
  const named = given ?? env.BERTH_DATA
  if (named !== undefined) return resolve(cwd, named)
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const candidate = join(directory, '.berth')
    if (existsSync(candidate)) return candidate
    if (directory === dirname(directory)) return resolve(cwd, '.berth')
  }
}

/** Matches an address of this machine without a scheme, as people type it. */
const LOOPBACK_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|$)/i

/**
 * Normalizes an address for comparing and storing, without a trailing slash.
 *
 * @throws UsageError for an invalid one
 */
export function normalizeBaseUrl(given: string): string {
  const text = LOOPBACK_HOST.test(given) ? `http://${given}` : given
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new UsageError(`The base URL must look like http://127.0.0.1:4747, got ${JSON.stringify(given)}.`)
  }
  return trimSlash(url.href)
}

const trimSlash = (url: string): string => url.replace(/\/+$/, '')

function readJson(path: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isObject(parsed) ? parsed : undefined
  } catch (error) {
    if (codeOf(error) === 'EACCES')
      throw new CommandError(`${path} may not be read by this user. Run as the user that runs berth.`)
    return undefined
  }
}
