import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { StartupError, UsageError } from '../errors.ts'
import { parseIso } from '../runtime/clock.ts'
import { parseDuration } from '../runtime/duration.ts'
import { messageOf } from '../runtime/error-info.ts'
import { parseKeyText } from '../runtime/key-text.ts'
import { LOG_LEVELS, type LogLevel } from '../runtime/logger.ts'
import { AGENT_DEFAULTS, AGENT_OPTIONS, AGENT_SECRETS, type AgentConfig, checkAgent } from './agents.ts'
import {
  boolean,
  integer,
  list,
  machineRegistry,
  object,
  oneOf,
  type PortRange,
  portRange,
  registryUrl,
  text,
} from './values.ts'

/** The isolations that a server can run under, strongest first. */
export const ISOLATIONS = ['bubblewrap', 'landlock', 'none'] as const

/** Name of an isolation. */
export type Isolation = (typeof ISOLATIONS)[number]

export type { PortRange }

/** All settings of `serve`, determined once at the start. */
export interface Config extends AgentConfig {
  readonly host: string
  /** TCP port, 0 for any free one. */
  readonly port: number
  /** Absolute path of the data directory; with `ephemeral` a fresh temporary one is made instead. */
  readonly dataDir: string
  readonly ephemeral: boolean
  /** One JSON line on stdout when ready instead of the banner. */
  readonly json: boolean
  readonly isolation: 'auto' | Isolation
  /** The first account's key, given instead of generated. */
  readonly apiKey: string | null
  /** The key that encrypts secrets, 32 bytes, instead of the data directory's `master.key`. */
  readonly masterKey: Uint8Array | null
  /** Ids and keys repeat from run to run. */
  readonly rngSeed: number | null
  /** Stops the clock at this time, milliseconds since 1970. */
  readonly freeze: number | null
  /** Whether the control API also responds to other machines. */
  readonly exposeControl: boolean
  /** Webhooks may go to http and loopback too, for development. */
  readonly allowLocalWebhooks: boolean
  /** The first and last port for projects and deployments; each has its own. */
  readonly projectPorts: PortRange
  /** Directories on this machine from which projects may be created, including everything below. */
  readonly sourceFolders: readonly string[]
  /** Address of the npm registry that servers install packages from, without a slash at the end. */
  readonly npmRegistry: string
  /** Whether projects' code may also come from loopback and private networks, for development. */
  readonly allowLocalSources: boolean
  /** A further name that the Host header may carry. */
  readonly publicHost: string | null
  readonly logLevel: LogLevel
  /** Milliseconds without use after which a running server goes to sleep; null for never. */
  readonly idleTimeoutMs: number | null
  /** Requests that the journal keeps; 0 for none. */
  readonly journalSize: number
  /** Changes to berth's own plan of accounts, as given. */
  readonly plan: Readonly<Record<string, unknown>> | null
}

/** One option of `serve`: a flag, an environment variable and a key of the config file at once. */
export interface ConfigOption {
  /** The flag without dashes, as in `idle-timeout`. */
  readonly name: string
  /** Placeholder after the flag in help texts; missing for a switch. */
  readonly value?: string
  /** Each use of the flag adds a value, and the option is given the list of them. */
  readonly repeatable?: boolean
  /** All values, if they are few, for completion. */
  readonly choices?: readonly string[]
  readonly description: string
  /** Converts a value to the setting; throws an Error that says what was expected. */
  readonly parse: (value: unknown) => Partial<Record<keyof Config, unknown>>
}

/** Matches a key that a person chose. */
export const API_KEY = /^sk_live_[A-Za-z0-9_-]{8,128}$/

/** Options whose values, even wrong ones, may hold a credential. */
const SECRET = ['api-key', 'npm-registry', ...AGENT_SECRETS]

/** The options of `serve`, the one list that flags, environment, file and help are made from. */
export const CONFIG_OPTIONS: readonly ConfigOption[] = [
  {
    name: 'host',
    value: 'ADDRESS',
    description: 'address to listen on (default 127.0.0.1)',
    parse: (value) => ({ host: text(value) }),
  },
  {
    name: 'port',
    value: 'PORT',
    description: 'port to listen on, 0 for any free one (default 4747)',
    parse: (value) => ({ port: integer(value, 0, 65_535) }),
  },
  {
    name: 'data',
    value: 'DIR',
    description: 'folder that keeps everything (default .berth)',
    parse: (value) => ({ dataDir: text(value) }),
  },
  {
    name: 'ephemeral',
    description: 'keep everything in a temporary folder that is removed at exit',
    parse: (value) => ({ ephemeral: boolean(value) }),
  },
  {
    name: 'json',
    description: 'print one JSON line when ready; logs go to stderr',
    parse: (value) => ({ json: boolean(value) }),
  },
  {
    name: 'isolation',
    value: 'TIER',
    choices: ['auto', ...ISOLATIONS],
    description: `how servers are isolated: auto, ${ISOLATIONS.join(', ')} (default auto)`,
    parse: (value) => ({ isolation: oneOf(value, ['auto', ...ISOLATIONS]) }),
  },
  {
    name: 'api-key',
    value: 'KEY',
    description: 'the first API key, for a headless start (sk_live_…)',
    parse: (value) => {
      if (typeof value === 'string' && API_KEY.test(value)) return { apiKey: value }
      throw new Error('sk_live_ followed by 8 to 128 letters, digits, "_" or "-"')
    },
  },
  {
    name: 'rng-seed',
    value: 'N',
    description: 'make ids and keys repeat from run to run (keys are then guessable)',
    parse: (value) => ({ rngSeed: integer(value, 0, Number.MAX_SAFE_INTEGER) }),
  },
  {
    name: 'freeze',
    value: 'TIME',
    description: 'let the clock stand at this ISO 8601 time',
    parse: (value) => {
      const at = typeof value === 'string' ? parseIso(value) : null
      if (at === null) throw new Error('an ISO 8601 time such as 2030-01-01T00:00:00Z')
      return { freeze: at }
    },
  },
  {
    name: 'expose-control',
    description: 'let callers from other machines use the control API too',
    parse: (value) => ({ exposeControl: boolean(value) }),
  },
  {
    name: 'allow-local-webhooks',
    description: 'let webhooks go to http and loopback addresses too, for development',
    parse: (value) => ({ allowLocalWebhooks: boolean(value) }),
  },
  {
    name: 'project-ports',
    value: 'FIRST-LAST',
    description: 'ports of projects and deployments (default 4800-4999)',
    parse: (value) => ({ projectPorts: portRange(value) }),
  },
  {
    name: 'source-folders',
    value: 'DIRS',
    description: 'folders, with ":" between, whose git repositories projects may be made from (default none)',
    parse: (value) => ({ sourceFolders: list(value, 'folders') }),
  },
  {
    name: 'npm-registry',
    value: 'URL',
    description:
      'where servers install npm packages from, through a cache (default npm_config_registry of the environment, else npm’s own)',
    parse: (value) => ({ npmRegistry: registryUrl(value) }),
  },
  {
    name: 'allow-local-sources',
    description: "let projects' code come from this machine's and private networks' addresses too",
    parse: (value) => ({ allowLocalSources: boolean(value) }),
  },
  {
    name: 'public-host',
    value: 'NAME',
    description: 'a further host name under which requests are accepted',
    parse: (value) => ({ publicHost: text(value).toLowerCase() }),
  },
  {
    name: 'log-level',
    value: 'LEVEL',
    choices: LOG_LEVELS,
    description: `${LOG_LEVELS.join(', ')} (default info)`,
    parse: (value) => ({ logLevel: oneOf(value, LOG_LEVELS) }),
  },
  {
    name: 'idle-timeout',
    value: 'DURATION',
    description: 'let a server sleep after this long without use, such as 15m (default off)',
    parse: (value) => {
      if (value === 'off' || value === false || value === null) return { idleTimeoutMs: null }
      const ms = parseDuration(String(value))
      if (ms === null) throw new Error('a duration such as 90s, 15m or 2h, or "off"')
      return { idleTimeoutMs: ms === 0 ? null : ms }
    },
  },
  {
    name: 'journal-size',
    value: 'N',
    description: 'how many requests the journal keeps, 0 for none (default 1000)',
    parse: (value) => ({ journalSize: integer(value, 0, 100_000) }),
  },
  {
    name: 'plan',
    value: 'JSON',
    description: 'what accounts may have and pay, such as {"servers":5} (see docs/accounts.md)',
    parse: (value) => ({ plan: object(value) }),
  },
  ...AGENT_OPTIONS,
]

/** The sources of a configuration. */
export interface ConfigSources {
  /** Flags as given, by option name. */
  flags: Record<string, unknown>
  env: Record<string, string | undefined>
  /** The working directory. */
  cwd: string
}

const DEFAULT_FILE = 'berth.config.json'

/**
 * Determines the configuration. A flag overrides the environment, the environment overrides the config file
 * (`--config`, `BERTH_CONFIG`, else `berth.config.json` if it exists), the file overrides the default.
 *
 * @throws UsageError for a bad flag, StartupError for a bad variable or file
 */
export function loadConfig({ flags, env, cwd }: ConfigSources): Config {
  const file = readConfigFile(flags.config ?? env.BERTH_CONFIG, cwd)
  const settings: Partial<Record<keyof Config, unknown>> = {
    host: '127.0.0.1',
    port: 4747,
    dataDir: '.berth',
    ephemeral: false,
    json: false,
    isolation: 'auto',
    apiKey: null,
    masterKey: null,
    rngSeed: null,
    freeze: null,
    exposeControl: false,
    allowLocalWebhooks: false,
    projectPorts: { first: 4800, last: 4999 },
    sourceFolders: [],
    npmRegistry: machineRegistry(env),
    allowLocalSources: false,
    publicHost: null,
    logLevel: 'info',
    idleTimeoutMs: null,
    journalSize: 1_000,
    plan: null,
    ...AGENT_DEFAULTS,
  }
  for (const option of CONFIG_OPTIONS) {
    const variable = environmentName(option.name)
    const [value, source] =
      flags[option.name] !== undefined
        ? [flags[option.name], 'flag' as const]
        : env[variable] !== undefined && env[variable] !== ''
          ? [env[variable], 'variable' as const]
          : [file.values[option.name], 'file' as const]
    if (value === undefined) continue
    try {
      Object.assign(settings, option.parse(value))
    } catch (error) {
      const expected = messageOf(error)
      const shown = SECRET.includes(option.name) ? 'the given value' : JSON.stringify(value)
      if (source === 'flag') throw new UsageError(`--${option.name}: expected ${expected}, got ${shown}.`)
      const where = source === 'variable' ? variable : `"${option.name}" in ${file.path}`
      throw new StartupError(`${where}: expected ${expected}, got ${shown}. Correct or remove it.`)
    }
  }
  settings.dataDir = resolve(cwd, String(settings.dataDir))
  for (const name of ['sourceFolders', 'fixtures'] as const) {
    settings[name] = (settings[name] as string[]).map((path) => resolve(cwd, path))
  }
  settings.masterKey = masterKeyOf(env.BERTH_MASTER_KEY)
  const config = settings as unknown as Config
  checkAgent(config)
  return Object.freeze(config)
}

/**
 * Reads the key from its variable only: a flag would show in process lists, and a file would keep it in plain text.
 */
function masterKeyOf(text: string | undefined): Uint8Array | null {
  if (text === undefined || text === '') return null
  const key = parseKeyText(text)
  if (key) return key
  throw new StartupError(
    'BERTH_MASTER_KEY: expected 32 bytes as base64 or hex, such as "openssl rand -base64 32" prints. Correct or unset it.',
  )
}

/** Returns the environment variable of an option: `idle-timeout` → `BERTH_IDLE_TIMEOUT`. */
export const environmentName = (option: string): string =>
  `BERTH_${option.toUpperCase().replaceAll('-', '_')}`

/** Returns the process's environment; everything else takes it as an argument. */
export const processEnvironment = (): Record<string, string | undefined> => process.env

/**
 * Keeps this process's requests to its own machine off the environment's proxy: berth listens on loopback, which a
 * proxy cannot reach, and the proxy must not see keys.
 */
export function reachLoopbackDirectly(): void {
  for (const name of ['NO_PROXY', 'no_proxy']) {
    process.env[name] = [process.env[name], '127.0.0.1', 'localhost', '.localhost', '::1', '[::1]']
      .filter(Boolean)
      .join(',')
  }
}

function readConfigFile(given: unknown, cwd: string): { path: string; values: Record<string, unknown> } {
  const path = resolve(cwd, typeof given === 'string' ? given : DEFAULT_FILE)
  if (typeof given !== 'string' && !existsSync(path)) return { path, values: {} }
  let parsed: unknown
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const cause = messageOf(error)
    throw new StartupError(
      `The config file ${path} cannot be read: ${cause}. Correct it or leave out --config.`,
    )
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new StartupError(`The config file ${path} must hold one JSON object.`)
  }
  const known = new Set(CONFIG_OPTIONS.map((option) => option.name))
  const values: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(parsed)) {
    if (key === '$schema') continue
    const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    if (!known.has(name)) {
      throw new StartupError(
        `The config file ${path} has an unknown key "${key}". Known keys: ${[...known].join(', ')}.`,
      )
    }
    values[name] = value
  }
  return { path, values }
}
