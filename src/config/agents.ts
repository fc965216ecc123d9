import { StartupError } from '../errors.ts'
import { choiceValue, listValue, url } from './values.ts'

/** The kinds of agents. */
export const AGENTS = ['scripted', 'openai', 'anthropic', 'command'] as const

/** Name of a kind of agent. */
export type AgentName = (typeof AGENTS)[number]

/** How a command agent receives the goal. */
const AGENT_INPUTS = ['argument', 'stdin'] as const

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
    setting: 'agent',
    kind: choiceValue(AGENTS),
  },
  {
    name: 'openai-base-url',
    value: 'URL',
    description: 'where the OpenAI protocol is spoken to, a local model server for example',
    setting: 'openaiBaseUrl',
    kind: url('http://127.0.0.1:11434/v1'),
  },
  {
    name: 'openai-api-key',
    value: 'KEY',
    description: 'the key for it; better given in the environment, which no process list shows',
    setting: 'openaiApiKey',
    kind: { kind: 'text' },
  },
  {
    name: 'openai-model',
    value: 'MODEL',
    description: 'the model to ask for there',
    setting: 'openaiModel',
    kind: { kind: 'text' },
  },
  {
    name: 'anthropic-base-url',
    value: 'URL',
    description: 'where the Anthropic protocol is spoken to',
    setting: 'anthropicBaseUrl',
    kind: url('http://127.0.0.1:11434/v1'),
  },
  {
    name: 'anthropic-api-key',
    value: 'KEY',
    description: 'the key for it; better given in the environment',
    setting: 'anthropicApiKey',
    kind: { kind: 'text' },
  },
  {
    name: 'anthropic-model',
    value: 'MODEL',
    description: 'the model to ask for there',
    setting: 'anthropicModel',
    kind: { kind: 'text' },
  },
  {
    name: 'agent-command',
    value: 'COMMAND',
    description: 'the command line that is the command agent, run on the server (see "berth guide agents")',
    setting: 'agentCommand',
    kind: { kind: 'text' },
  },
  {
    name: 'agent-input',
    value: 'HOW',
    choices: AGENT_INPUTS,
    description: 'how it is given the goal: argument, stdin (default argument)',
    setting: 'agentInput',
    kind: choiceValue(AGENT_INPUTS),
  },
  {
    name: 'agent-question',
    value: 'REGEX',
    description: 'a line of its output that this matches is a question to the caller',
    setting: 'agentQuestion',
    kind: { kind: 'pattern' },
  },
  {
    name: 'agent-limits',
    value: 'JSON',
    description: 'what a piece of work may use, such as {"steps":50,"time":"10m"} (see "berth guide agents")',
    setting: 'agentLimits',
    kind: { kind: 'agent-limits' },
  },
  {
    name: 'fixtures',
    value: 'FILE',
    repeatable: true,
    description:
      'a file that says what there is at the start (see "berth guide fixtures"); may be repeated, the variable takes several with ":" between',
    setting: 'fixtures',
    kind: listValue('files'),
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
