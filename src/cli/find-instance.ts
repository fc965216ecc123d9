import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import { CommandError } from './errors.ts'
import { type Login, readLogins } from './login/credentials.ts'
import type { ProcessContext } from './process-context.ts'

/** The options by which a command names the instance to talk to. */
export interface ConnectionOptions {
  baseUrl?: string
  apiKey?: string
  adminToken?: string
  data?: string
}

/** A running berth and what opens it. */
export interface InstanceConnection {
  /** Without a trailing slash. */
  baseUrl: string
  /** The API key, or for the control API the admin token. */
  credential: string
  /** Where the credential was found. */
  source: CredentialSource
  /** What is kept of the sign-in, where it is from there. */
  login?: Login
}

/** Where a credential can come from, the first one that has one counts. */
export type CredentialSource = 'flag' | 'environment' | 'data directory' | 'login'

/** What a command talks to: the API by a key, or the control API by the admin token. */
export type ApiKind = 'api' | 'control'

/** The sources of each api's credential, and its name for people. */
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

/**
 * Finds the instance to talk to: `--base-url` and `--api-key` (`--admin-token`), else BERTH_BASE_URL and
 * BERTH_API_KEY (BERTH_ADMIN_TOKEN), else what the data directory says of the instance that runs on it, else, for the API,
 * what `berth login` has left. The directory's credentials go to the directory's own instance only, and the key of a login to
 * its own URL, never to an address given from elsewhere.
 *
 * @throws UsageError for an address that is none, CommandError where no instance or key is found
 */
export function findInstance(
  options: ConnectionOptions,
  { env, cwd }: Pick<ProcessContext, 'env' | 'cwd'>,
  api: ApiKind = 'api',
): InstanceConnection {
  const { option, variable, field, what, flag } = CREDENTIALS[api]
  const { directory, directoryUrl, baseUrl, connectionEnv } = findBaseUrl(options, { env, cwd })
  const flagged = options[option]
  const credential = flagged ?? (connectionEnv[variable] || undefined)
  if (baseUrl === undefined) {
    // A directory that is named has to have one.
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
    // A directory is named by the variable in every shell that it was set in.
    const named = options.data === undefined && env.BERTH_DATA ? ', which BERTH_DATA names' : ''
    throw new CommandError(
      `No berth runs on ${directory}${named}. Start one with "berth serve", or name one with --base-url or --data${api === 'api' && !isNamed ? `, or sign in to one with "berth login URL"${loginsHint(env)}` : ''}.`,
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
  throw new CommandError(
    `No ${what} for ${baseUrl}. Give it with ${flag} or ${variable}${api === 'api' ? `, or run "berth login ${baseUrl}"` : ', or name its data directory with --data: "berth list" tells it'}.`,
  )
}

/** What is said of a key that came alone: it may be for any instance, and so is sent to none that was signed in to. */
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

/** The instance that was signed in to last, or chosen. */
function currentLogin(env: ProcessContext['env']): InstanceConnection | null {
  const { current, instances } = readLogins(env)
  const login = current === null ? undefined : instances.get(current)
  if (current === null || !login) return null
  return { baseUrl: current, credential: login.api_key, source: 'login', login }
}

/** For a message: which ones could be chosen. */
function loginsHint(env: ProcessContext['env']): string {
  const urls = [...readLogins(env).instances.keys()]
  return urls.length === 0
    ? ''
    : `. You are signed in to ${urls.join(', ')}: choose with "berth login --switch URL"`
}

/** Where an instance is, as far as is known. */
interface InstanceAddress {
  /** The data directory that is looked at. */
  directory: string
  /** What the directory says of its own instance. */
  directoryUrl: string | undefined
  /** The address that is meant, without a trailing slash; undefined where none is given and none runs. */
  baseUrl: string | undefined
  /** The variables that count. */
  connectionEnv: Record<string, string | undefined>
}

/** Finds the address alone: `--base-url`, else BERTH_BASE_URL, else that of the data directory's instance. */
export function findBaseUrl(
  options: ConnectionOptions,
  { env, cwd }: Pick<ProcessContext, 'env' | 'cwd'>,
): InstanceAddress {
  const directory = findDataDirectory(options.data, env, cwd)
  const local = readJson(join(directory, 'instance.json'))
  const directoryUrl = typeof local?.base_url === 'string' ? trimSlash(local.base_url) : undefined
  // A flag beats the environment: with --data the variables speak of another instance.
  const connectionEnv = options.data === undefined ? env : {}
  const given = options.baseUrl ?? (connectionEnv.BERTH_BASE_URL || undefined)
  return {
    directory,
    directoryUrl,
    baseUrl: given === undefined ? directoryUrl : normalizeBaseUrl(given),
    connectionEnv,
  }
}

/**
 * The data directory a command means: `--data`, else BERTH_DATA, else `.berth` in the working directory or
 * in the nearest parent that has one.
 */
export function findDataDirectory(
  given: string | undefined,
  env: Record<string, string | undefined>,
  cwd: string,
): string {
  const named = given ?? (env.BERTH_DATA || undefined)
  if (named !== undefined) return resolve(cwd, named)
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const candidate = join(directory, '.berth')
    if (existsSync(candidate)) return candidate
    if (directory === dirname(directory)) return resolve(cwd, '.berth')
  }
}

/** A place on this machine without its scheme, as people type it. */
const LOOPBACK_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|$)/i

/** An address as it is compared and kept, without a slash at the end. @throws UsageError for one that is none */
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
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new CommandError(`${path} may not be read by this user. Run as the user that runs berth.`)
    return undefined
  }
}
