import { StartupError } from '../errors.ts'
import { parseDuration } from '../runtime/duration.ts'
import { integer, list, object, oneOf, regularExpression, serviceUrl, text } from './values.ts'

/** The kinds of agents. */
export const AGENTS = ['scripted', 'openai', 'anthropic', 'command'] as const

/** Name of a kind of agent. */
export type AgentName = (typeof AGENTS)[number]

/** How a command agent receives the goal. */
export const AGENT_INPUTS = ['argument', 'stdin'] as const

/** What one piece of an agent's work may use before it fails. */
export interface AgentLimits {
  /** Responses of the model. */
  readonly steps: number
  /** Tokens of the model, read and written. */
  readonly tokens: number
  /** Most tokens of one request, estimated; the oldest parts of a longer conversation are shortened. */
  readonly context: number
  /** US dollars, by the prices given; null for any. */
  readonly cost: number | null
  readonly timeMs: number
  /** US dollars for a million tokens read; null if it is not known. */
  readonly inputPrice: number | null
  /** US dollars for a million tokens written; null if it is not known. */
  readonly outputPrice: number | null
}

/** The settings of agents. */
export interface AgentConfig {
  /** Which kind does tasks and builds. */
  readonly agent: AgentName
  /**
   * Address that the OpenAI protocol is spoken to, without a slash at the end, such as `https://api.openai.com/v1`.
   */
  readonly openaiBaseUrl: string
  readonly openaiApiKey: string | null
  readonly openaiModel: string | null
  readonly anthropicBaseUrl: string
  readonly anthropicApiKey: string | null
  readonly anthropicModel: string | null
  /** The shell command of the command agent. */
  readonly agentCommand: string | null
  readonly agentInput: (typeof AGENT_INPUTS)[number]
  /** A line of the command's output that this matches is a question to the caller. */
  readonly agentQuestion: RegExp | null
  readonly agentLimits: AgentLimits
  /** Files with initial contents, such as scenarios. */
  readonly fixtures: readonly string[]
}

const LIMITS: AgentLimits = {
  steps: 100,
  tokens: 4_000_000,
  context: 80_000,
  cost: null,
  timeMs: 60 * 60_000,
  inputPrice: null,
  outputPrice: null,
}

/** The defaults of all settings. */
export const AGENT_DEFAULTS: AgentConfig = {
  agent: 'scripted',
  openaiBaseUrl: 'https://api.openai.com/v1',
  openaiApiKey: null,
  openaiModel: null,
  anthropicBaseUrl: 'https://api.anthropic.com/v1',
  anthropicApiKey: null,
  anthropicModel: null,
  agentCommand: null,
  agentInput: 'argument',
  agentQuestion: null,
  agentLimits: LIMITS,
  fixtures: [],
}

/** Options whose values hold a credential. */
export const AGENT_SECRETS = ['openai-api-key', 'anthropic-api-key']

/** The options of agents, in the form of config.ts. */
export const AGENT_OPTIONS = [
  {
    name: 'agent',
    value: 'AGENT',
    choices: AGENTS,
    description: `who does tasks and builds: ${AGENTS.join(', ')} (default scripted)`,
    parse: (value: unknown) => ({ agent: oneOf(value, AGENTS) }),
  },
  {
    name: 'openai-base-url',
    value: 'URL',
    description: 'where the OpenAI protocol is spoken to, a local model server for example',
    parse: (value: unknown) => ({ openaiBaseUrl: serviceUrl(value) }),
  },
  {
    name: 'openai-api-key',
    value: 'KEY',
    description: 'the key for it; better given in the environment, which no process list shows',
    parse: (value: unknown) => ({ openaiApiKey: text(value) }),
  },
  {
    name: 'openai-model',
    value: 'MODEL',
    description: 'the model to ask for there',
    parse: (value: unknown) => ({ openaiModel: text(value) }),
  },
  {
    name: 'anthropic-base-url',
    value: 'URL',
    description: 'where the Anthropic protocol is spoken to',
    parse: (value: unknown) => ({ anthropicBaseUrl: serviceUrl(value) }),
  },
  {
    name: 'anthropic-api-key',
    value: 'KEY',
    description: 'the key for it; better given in the environment',
    parse: (value: unknown) => ({ anthropicApiKey: text(value) }),
  },
  {
    name: 'anthropic-model',
    value: 'MODEL',
    description: 'the model to ask for there',
    parse: (value: unknown) => ({ anthropicModel: text(value) }),
  },
  {
    name: 'agent-command',
    value: 'COMMAND',
    description: 'the command line that is the command agent, run on the server (see docs/command-agent.md)',
    parse: (value: unknown) => ({ agentCommand: text(value) }),
  },
  {
    name: 'agent-input',
    value: 'HOW',
    choices: AGENT_INPUTS,
    description: 'how it is given the goal: argument, stdin (default argument)',
    parse: (value: unknown) => ({ agentInput: oneOf(value, AGENT_INPUTS) }),
  },
  {
    name: 'agent-question',
    value: 'REGEX',
    description: 'a line of its output that this matches is a question to the caller',
    parse: (value: unknown) => ({ agentQuestion: regularExpression(value) }),
  },
  {
    name: 'agent-limits',
    value: 'JSON',
    description: 'what a piece of work may use, such as {"steps":50,"time":"10m"} (see docs/agents.md)',
    parse: (value: unknown) => ({ agentLimits: agentLimits(value) }),
  },
  {
    name: 'fixtures',
    value: 'FILE',
    repeatable: true,
    description:
      'a file that says what there is at the start (see docs/fixtures.md); may be repeated, the variable takes several with ":" between',
    parse: (value: unknown) => ({ fixtures: list(value, 'files') }),
  },
] as const

/** The setting that a kind of agent requires, and its option. */
const NEEDED: Partial<Record<AgentName, readonly [setting: keyof AgentConfig, option: string]>> = {
  openai: ['openaiModel', 'openai-model'],
  anthropic: ['anthropicModel', 'anthropic-model'],
  command: ['agentCommand', 'agent-command'],
}

/**
 * Checks that the chosen agent has its required setting.
 *
 * @throws StartupError if it does not
 */
export function checkAgent(config: AgentConfig): void {
  const [setting, option] = NEEDED[config.agent] ?? []
  if (setting === undefined || option === undefined || config[setting] !== null) return
  const variable = `BERTH_${option.toUpperCase().replaceAll('-', '_')}`
  throw new StartupError(
    `The agent "${config.agent}" needs --${option} as well. Give it, or set ${variable}; without --agent berth runs the scripted one.`,
  )
}

/** How each limit is read. */
const READERS: Record<string, (value: unknown) => Partial<AgentLimits>> = {
  steps: (value) => ({ steps: integer(value, 1, 100_000) }),
  tokens: (value) => ({ tokens: integer(value, 1, Number.MAX_SAFE_INTEGER) }),
  context: (value) => ({ context: integer(value, 1_000, 100_000_000) }),
  cost: (value) => ({ cost: price(value) }),
  time: (value) => ({ timeMs: duration(value) }),
  input_price: (value) => ({ inputPrice: price(value) }),
  output_price: (value) => ({ outputPrice: price(value) }),
}

function agentLimits(value: unknown): AgentLimits {
  let limits = LIMITS
  for (const [name, given] of Object.entries(object(value))) {
    const read = READERS[name]
    if (!read) throw new Error(`an object with ${Object.keys(READERS).join(', ')}, not "${name}"`)
    try {
      limits = { ...limits, ...read(given) }
    } catch (error) {
      throw new Error(`for "${name}" ${error instanceof Error ? error.message : error}`)
    }
  }
  const { cost, inputPrice, outputPrice } = limits
  if (cost !== null && (inputPrice === null || outputPrice === null)) {
    throw new Error('"input_price" and "output_price", US dollars for a million tokens, beside "cost"')
  }
  return limits
}

function price(value: unknown): number | null {
  if (value === null) return null
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw new Error('an amount of US dollars')
}

function duration(value: unknown): number {
  const ms = parseDuration(String(value))
  if (ms !== null && ms > 0) return ms
  throw new Error('a duration such as 90s, 10m or 2h')
}
