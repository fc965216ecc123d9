/**
 * The options of `berth serve`. `CONFIG_OPTIONS` is the table of them, from which the help, docs/options.md and the
 * file's schema are made. `load.ts` reads them from flags, variables and a file, and has their defaults; those of
 * agents are in `agents.ts`, and those of where servers run, such as Docker's and Kubernetes's, in `compute.ts`.
 *
 * A new option is a field of `Config`, its entry in the table, its default in `load.ts` (repeated in the description;
 * that of the port also in src/cli/instances/start.ts) and its line in fixtures/config/every-option.json. If it is a
 * credential, name it in `SECRET_OPTIONS` too.
 */

import { LOG_LEVELS, type LogLevel } from '../runtime/logger.ts'
import { AGENT_OPTIONS, AGENT_SECRETS, type AgentConfig } from './agents.ts'
import { COMPUTE_OPTIONS, type ComputeConfig, type EngineConfig, type KubernetesConfig } from './compute.ts'
import {
  choiceValue,
  integerValue,
  listValue,
  OUTBOUND_MODES,
  type OutboundMode,
  type PortRange,
  url,
  type ValueKind,
} from './values.ts'

/** The isolations that a server can run under, strongest first; `seatbelt` is that of macOS. */
export const ISOLATIONS = ['bubblewrap', 'landlock', 'seatbelt', 'none'] as const

/** Name of an isolation. */
export type Isolation = (typeof ISOLATIONS)[number]

export type { PortRange }

/** All settings of `serve`, determined once at the start. */
export interface Config extends AgentConfig, ComputeConfig {
  readonly host: string
  /** TCP port, 0 for any free one. */
  readonly port: number
  /** Absolute path of the data directory; with `ephemeral` a fresh temporary one is made instead. */
  readonly dataDir: string
  readonly ephemeral: boolean
  /** Absolute path of the snapshot that an empty data directory is filled with, or null. */
  readonly snapshot: string | null
  /** One JSON line on stdout when ready instead of the banner. */
  readonly json: boolean
  readonly isolation: 'auto' | Isolation
  /** The first account's key, given instead of generated. */
  readonly apiKey: string | null
  /** What to say of settings when berth starts, each a sentence. */
  readonly notes: readonly string[]
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
  /** What servers with a network of their own may reach, if nothing else is set for one. */
  readonly outbound: OutboundMode
  /** Host patterns: what `list` allows, and what `public` allows in addition to the internet. */
  readonly outboundHosts: readonly string[]
  /** Ports of this machine's loopback that servers with a network of their own reach at the same port of theirs. */
  readonly serverHosts: readonly number[]
  /** Whether commands under landlock may use Unix sockets, though they then reach those of the user's programs. */
  readonly allowUnixSockets: boolean
  /** How many servers run before they are created, so that a creation need not wait for their start. */
  readonly spareServers: number
  /** Whether projects' code may also come from loopback and private networks, for development. */
  readonly allowLocalSources: boolean
  /** A further name that the Host header may carry. */
  readonly publicHost: string | null
  readonly logLevel: LogLevel
  /** Milliseconds without use after which a running server goes to sleep; null for never. */
  readonly idleTimeoutMs: number | null
  /** Milliseconds without viewer and output after which a terminal ends; null for never. */
  readonly terminalIdleMs: number | null
  /** Milliseconds without output, input and reader after which an execution ends; null for never. */
  readonly executionIdleMs: number | null
  /** Most characters of a result of an MCP tool. */
  readonly mcpOutput: number
  /** Requests that the journal keeps; 0 for none. */
  readonly journalSize: number
  /** Changes to berth's own plan of accounts, as given. */
  readonly plan: Readonly<Record<string, unknown>> | null
}

/** One option of `serve`: a flag, an environment variable and a key of the config file at once. */
interface ConfigOption {
  /** The flag without dashes, as in `idle-timeout`. */
  readonly name: string
  /** Placeholder after the flag in help texts; missing for a switch. */
  readonly value?: string
  /** Each use of the flag adds a value, and the option is given the list of them. */
  readonly repeatable?: boolean
  /** All values, if they are few, for completion. */
  readonly choices?: readonly string[]
  readonly description: string
  /** The setting that it makes: a field of `Config`, or of one of the objects in it. */
  readonly setting: keyof Config | `engine.${keyof EngineConfig}` | `kubernetes.${keyof KubernetesConfig}`
  readonly kind: ValueKind
}

/** Largest `spareServers`; each takes memory. @bound owner */
const MOST_SPARE_SERVERS = 100

/** Options whose values, even wrong ones, may hold a credential. */
export const SECRET_OPTIONS: readonly string[] = ['api-key', 'npm-registry', 'engine', ...AGENT_SECRETS]

/** The options of `serve`, the one list that flags, environment, file and help are made from. */
export const CONFIG_OPTIONS: readonly ConfigOption[] = [
  {
    name: 'host',
    value: 'ADDRESS',
    description: 'address to listen on (default 127.0.0.1)',
    setting: 'host',
    kind: { kind: 'text' },
  },
  {
    name: 'port',
    value: 'PORT',
    description: 'port to listen on, 0 for any free one (default 4747)',
    setting: 'port',
    kind: integerValue(0, 65_535),
  },
  {
    name: 'data',
    value: 'DIR',
    description: 'directory that keeps everything (default .berth)',
    setting: 'dataDir',
    kind: { kind: 'text' },
  },
  {
    name: 'ephemeral',
    description: 'keep everything in a temporary directory that is removed at exit',
    setting: 'ephemeral',
    kind: { kind: 'switch' },
  },
  {
    name: 'snapshot',
    value: 'DIR',
    description:
      'begin with a copy of this snapshot (snapshots/NAME in a data directory), in an empty data directory',
    setting: 'snapshot',
    kind: { kind: 'text' },
  },
  {
    name: 'json',
    description: 'print one JSON line when ready; logs go to stderr',
    setting: 'json',
    kind: { kind: 'switch' },
  },
  {
    name: 'isolation',
    value: 'MODE',
    choices: ['auto', ...ISOLATIONS],
    description: `how servers are isolated: auto, ${ISOLATIONS.join(', ')} (default auto)`,
    setting: 'isolation',
    kind: choiceValue(['auto', ...ISOLATIONS]),
  },
  ...COMPUTE_OPTIONS,
  {
    name: 'outbound',
    value: 'MODE',
    choices: OUTBOUND_MODES,
    description: `what servers may reach: ${OUTBOUND_MODES.join(', ')} (default public: the internet)`,
    setting: 'outbound',
    kind: choiceValue(OUTBOUND_MODES),
  },
  {
    name: 'outbound-hosts',
    value: 'HOSTS',
    description: 'hosts that servers may reach too, such as example.com:443,10.0.0.5:5432',
    setting: 'outboundHosts',
    kind: { kind: 'hosts' },
  },
  {
    name: 'server-hosts',
    value: 'PORTS',
    description: "ports of this machine's loopback that servers reach at theirs, such as 5432,6379",
    setting: 'serverHosts',
    kind: { kind: 'port-list' },
  },
  {
    name: 'allow-unix-sockets',
    description: "let commands under landlock use Unix sockets, though they then reach your programs' too",
    setting: 'allowUnixSockets',
    kind: { kind: 'switch' },
  },
  {
    name: 'spare-servers',
    value: 'N',
    description: 'servers kept ready for quick creation (default 1)',
    setting: 'spareServers',
    kind: integerValue(0, MOST_SPARE_SERVERS),
  },
  {
    name: 'api-key',
    value: 'KEY',
    description: 'the first API key, for a headless start (sk_live_…)',
    setting: 'apiKey',
    kind: { kind: 'key' },
  },
  {
    name: 'rng-seed',
    value: 'N',
    description: 'make ids and keys repeat from run to run (keys are then guessable)',
    setting: 'rngSeed',
    kind: integerValue(0, Number.MAX_SAFE_INTEGER),
  },
  {
    name: 'freeze',
    value: 'TIME',
    description: 'let the clock stand at this ISO 8601 time',
    setting: 'freeze',
    kind: { kind: 'time' },
  },
  {
    name: 'expose-control',
    description: 'let callers from other machines use the control API too',
    setting: 'exposeControl',
    kind: { kind: 'switch' },
  },
  {
    name: 'allow-local-webhooks',
    description: 'let webhooks go to http and loopback addresses too, for development',
    setting: 'allowLocalWebhooks',
    kind: { kind: 'switch' },
  },
  {
    name: 'project-ports',
    value: 'FIRST-LAST',
    description: 'ports of projects and deployments (default 4800-4999)',
    setting: 'projectPorts',
    kind: { kind: 'ports' },
  },
  {
    name: 'source-folders',
    value: 'DIRS',
    description:
      'directories, with ":" between, whose git repositories projects may be made from (default none)',
    setting: 'sourceFolders',
    kind: listValue('directories'),
  },
  {
    name: 'npm-registry',
    value: 'URL',
    description:
      'where servers install npm packages from, through a cache (default npm_config_registry of the environment, else npm’s own)',
    setting: 'npmRegistry',
    kind: url('https://registry.npmjs.org'),
  },
  {
    name: 'allow-local-sources',
    description: "let projects' code come from this machine's and private networks' addresses too",
    setting: 'allowLocalSources',
    kind: { kind: 'switch' },
  },
  {
    name: 'public-host',
    value: 'NAME',
    description: 'a further host name under which requests are accepted',
    setting: 'publicHost',
    kind: { kind: 'host' },
  },
  {
    name: 'log-level',
    value: 'LEVEL',
    choices: LOG_LEVELS,
    description: `${LOG_LEVELS.join(', ')} (default info)`,
    setting: 'logLevel',
    kind: choiceValue(LOG_LEVELS),
  },
  {
    name: 'idle-timeout',
    value: 'DURATION',
    description: 'let a server sleep after this long without use, such as 15m (default off)',
    setting: 'idleTimeoutMs',
    kind: { kind: 'timeout' },
  },
  {
    name: 'terminal-idle',
    value: 'DURATION',
    description: 'end a terminal after this long without viewer and output, 0 for never (default 1h)',
    setting: 'terminalIdleMs',
    kind: { kind: 'timeout' },
  },
  {
    name: 'execution-idle',
    value: 'DURATION',
    description:
      'end a detached command after this long without output, input and reader, 0 for never (default 1h)',
    setting: 'executionIdleMs',
    kind: { kind: 'timeout' },
  },
  {
    name: 'mcp-output',
    value: 'N',
    description: 'most characters of a result of an MCP tool (default 24000)',
    setting: 'mcpOutput',
    kind: integerValue(4_000, 10_000_000),
  },
  {
    name: 'journal-size',
    value: 'N',
    description: 'how many requests the journal keeps, 0 for none (default 1000)',
    setting: 'journalSize',
    kind: integerValue(0, 100_000),
  },
  {
    name: 'plan',
    value: 'JSON',
    description: 'what accounts may have and pay, such as {"servers":5} (see "berth guide accounts")',
    setting: 'plan',
    kind: { kind: 'object', example: '{"servers":5}' },
  },
  ...AGENT_OPTIONS,
]

/** Returns the environment variable of an option: `idle-timeout` → `BERTH_IDLE_TIMEOUT`. */
export const environmentName = (option: string): string =>
  `BERTH_${option.toUpperCase().replaceAll('-', '_')}`
