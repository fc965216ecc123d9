import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { StartupError, UsageError } from '../errors.ts'
import { messageOf } from '../runtime/error-info.ts'
import { parseKeyText } from '../runtime/key-text.ts'
import { JsonDocument, JsonSyntaxError } from '../runtime/validation/json-document.ts'
import { unknownField } from '../runtime/validation/validate.ts'
import { ValidationError } from '../runtime/validation/validation-error.ts'
import { AGENT_DEFAULTS, checkAgent } from './agents.ts'
import { checkValue, plainUrl } from './check-value.ts'
import { COMPUTE_DEFAULTS, COMPUTE_OPTIONS, type ComputeConfig, computeOf } from './compute.ts'
import { CONFIG_OPTIONS, type Config, environmentName, SECRET_OPTIONS } from './config.ts'

/** The sources of a configuration. */
interface ConfigSources {
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
  const settings: Record<string, unknown> = {
    host: '127.0.0.1',
    port: 4747,
    dataDir: '.berth',
    ephemeral: false,
    snapshot: null,
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
    outbound: 'public',
    outboundHosts: [],
    serverHosts: [],
    allowUnixSockets: false,
    spareServers: 1,
    allowLocalSources: false,
    publicHost: null,
    logLevel: 'info',
    idleTimeoutMs: null,
    terminalIdleMs: 3_600_000,
    executionIdleMs: 3_600_000,
    mcpOutput: 24_000,
    journalSize: 1_000,
    plan: null,
    ...AGENT_DEFAULTS,
    ...COMPUTE_DEFAULTS,
    engine: { ...COMPUTE_DEFAULTS.engine },
    kubernetes: { ...COMPUTE_DEFAULTS.kubernetes },
  }
  for (const { name, setting, kind } of CONFIG_OPTIONS) {
    const check = (value: unknown): unknown => checkValue(value, kind, SECRET_OPTIONS.includes(name))
    const variable = environmentName(name)
    const set = (value: unknown): unknown => setAt(settings, setting, value)
    if (flags[name] !== undefined) {
      const refusal = (error: ValidationError): Error => new UsageError(`--${name}: ${error.describe('')}`)
      set(refusing(() => check(flags[name]), refusal))
    } else if (env[variable]) {
      const refusal = (error: ValidationError): Error =>
        new StartupError(`${variable}: ${error.describe('')} Correct or remove it.`)
      set(refusing(() => check(env[variable]), refusal))
    } else file.use(name, (value) => set(check(value)))
  }
  file.end()
  settings.notes = file.notes
  settings.dataDir = resolve(cwd, String(settings.dataDir))
  if (settings.snapshot !== null) settings.snapshot = resolve(cwd, String(settings.snapshot))
  for (const name of ['sourceFolders', 'fixtures'] as const) {
    settings[name] = (settings[name] as string[]).map((path) => resolve(cwd, path))
  }
  const { engine, kubernetes, compute } = settings as unknown as ComputeConfig
  settings.engine = {
    ...engine,
    tlsDirectory: engine.tlsDirectory === null ? null : resolve(cwd, engine.tlsDirectory),
  }
  settings.kubernetes = {
    ...kubernetes,
    kubeconfig: kubernetes.kubeconfig.map((path) => resolve(cwd, path)),
  }
  settings.compute = computeOf(compute, String(settings.isolation))
  settings.masterKey = masterKeyOf(env.BERTH_MASTER_KEY)
  // Each option has a default, and `check` has made its value one of its kind.
  const config = settings as unknown as Config
  checkAgent(config)
  return Object.freeze(config)
}

/** Sets a field of the settings, or of an object in them. Returns the value. */
function setAt(settings: Record<string, unknown>, setting: string, value: unknown): unknown {
  const [outer = '', inner] = setting.split('.')
  if (inner === undefined) settings[outer] = value
  else settings[outer] = { ...(settings[outer] as object), [inner]: value }
  return value
}

/** Does something. @param refusal makes the error to throw in place of a ValidationError */
function refusing<Result>(work: () => Result, refusal: (error: ValidationError) => Error): Result {
  try {
    return work()
  } catch (error) {
    throw error instanceof ValidationError ? refusal(error) : error
  }
}

/** Returns npm's registry on this machine by the environment, or npm's default. */
const machineRegistry = (env: Readonly<Record<string, string | undefined>>): string =>
  plainUrl(env.npm_config_registry ?? env.NPM_CONFIG_REGISTRY ?? '') ?? 'https://registry.npmjs.org'

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

/** The config file while its values are used. */
interface ConfigFile {
  /** What to say of the settings that were used, each a sentence. */
  readonly notes: readonly string[]
  /**
   * Passes on the value of an option, if the file has one. A ValidationError is kept for `end`.
   *
   * @param read returns the setting
   */
  use(option: string, read: (value: unknown) => unknown): void
  /** @throws StartupError for all mistakes that were found, with their lines */
  end(): void
}

function readConfigFile(given: unknown, cwd: string): ConfigFile {
  const path = resolve(cwd, typeof given === 'string' ? given : DEFAULT_FILE)
  const isNamed = typeof given === 'string'
  if (!isNamed && !existsSync(path)) return { notes: [], use: () => {}, end: () => {} }
  const document = readJson(path)
  const values = document.value
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new StartupError(`The config file ${path} must hold one JSON object.`)
  }
  const known = CONFIG_OPTIONS.map(({ name }) => name)
  const keys = Object.keys(values).filter((key) => key !== '$schema')
  const unknown = keys.filter((key) => !known.includes(optionOf(key)))
  const mistakes = unknown.map((key) => unknownField([key], known))
  const notes: string[] = []
  return {
    notes,
    use(option, read) {
      const key = keys.findLast((one) => optionOf(one) === option)
      if (key === undefined) return
      try {
        if (!isNamed && NEVER_FOUND.has(option)) throw new ValidationError([], OF_A_NAMED_FILE)
        const setting = read((values as Record<string, unknown>)[key])
        const note = isNamed ? null : noteOnFound(path, option, key, setting)
        if (note !== null) notes.push(note)
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error
        mistakes.push(...error.all.map((one) => one.below(key)))
      }
    },
    end() {
      const [first, ...others] = mistakes
      if (!first) return
      const names = unknown.length > 0 ? ` Known fields: ${known.join(', ')}.` : ''
      throw new StartupError(
        `The config file ${path}, ${document.describe(first.with(others))}${names} Correct it, or leave the file out.`,
      )
    },
  }
}

/** Returns the option that a key of the file means: `idleTimeout` → `idle-timeout`. */
const optionOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

function readJson(path: string): JsonDocument {
  try {
    return new JsonDocument(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new StartupError(
      error instanceof JsonSyntaxError
        ? `The config file ${path}, ${error.message} Correct it or leave out --config.`
        : `The config file ${path} cannot be read: ${messageOf(error)}. Correct it or leave out --config.`,
    )
  }
}

/** Matches the names and addresses of loopback. A start loads no library for that. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[?::1\]?)$/

/** Returns what it means for a person that a model is asked at an address; null at one of this machine. */
const modelAt = (url: unknown): string | null =>
  LOOPBACK.test(new URL(String(url)).hostname) ? null : 'has tasks, and your key for the model, sent there'

/** Options that no file sets which nobody has named: with them it could have berth use rights on other machines. */
const NEVER_FOUND: ReadonlySet<string> = new Set(COMPUTE_OPTIONS.map(({ name }) => name))

const OF_A_NAMED_FILE =
  'it decides where servers run and with which rights, so flags, variables and a file that --config names set it, and none that was found.'

/** What settings let others do, by option; null for those of an option that let nobody do anything. */
const MEANINGS: Readonly<Record<string, (setting: unknown) => string | null>> = {
  isolation: (name) => (name === 'none' ? 'lets servers do on this machine what you may' : null),
  'allow-unix-sockets': (isOn) =>
    isOn ? 'lets servers reach programs of this machine, such as Docker and an SSH agent' : null,
  host: (host) => (LOOPBACK.test(String(host)) ? null : 'lets other machines reach berth'),
  'openai-base-url': modelAt,
  'anthropic-base-url': modelAt,
}

/**
 * Returns a sentence about a setting of a config file that nobody has named, if it lets others do what the person who starts
 * berth may not expect; null otherwise. Such a file may have come with somebody's code, or with a copy from a server.
 *
 * @param path the file
 * @param key the option as the file spells it
 */
function noteOnFound(path: string, option: string, key: string, setting: unknown): string | null {
  const meaning = MEANINGS[option]?.(setting) ?? null
  if (meaning === null) return null
  return `${path} was found here and sets "${key}" to ${JSON.stringify(setting)}, which ${meaning}. Remove that unless you trust who wrote it. If you name the file with --config, nothing is said.`
}
