import type { AgentConfig, AgentLimits } from '../../config/agents.ts'
import type { Clock } from '../../runtime/clock.ts'
import { Masks } from '../../runtime/masks.ts'
import {
  type Agent,
  AgentError,
  type AgentPlan,
  type Assignment,
  type Outcome,
  type PlanRequest,
} from '../agent.ts'
import { Dialogue } from './dialogue.ts'
import { Endpoint } from './endpoint.ts'
import { EndpointFailure } from './failures.ts'
import { makePlan } from './planning.ts'
import { PLANNING, planningGoal, systemPrompt } from './prompts.ts'
import { anthropicProvider, openaiProvider, type Provider } from './providers.ts'
import { ToolLoop } from './tool-loop.ts'

/** What a model agent needs. */
interface ModelDependencies {
  clock: Clock
  config: AgentConfig
}

/** What differs from berth's own choice. */
export interface ModelAgentOptions {
  /** Milliseconds that the endpoint may send nothing. */
  silenceMs?: number
}

/** Returns the agent behind OpenAI's protocol. */
export const openaiAgent = (parts: ModelDependencies, options?: ModelAgentOptions): ModelAgent =>
  new ModelAgent(openaiProvider(parts.config), parts, options)

/** Returns the agent behind Anthropic's protocol. */
export const anthropicAgent = (parts: ModelDependencies, options?: ModelAgentOptions): ModelAgent =>
  new ModelAgent(anthropicProvider(parts.config), parts, options)

/** An agent that is a language model behind an endpoint and works with berth's tools. */
class ModelAgent implements Agent {
  readonly #endpoint: Endpoint
  readonly #limits: AgentLimits
  readonly secrets: readonly string[]

  constructor(provider: Provider, { clock, config }: ModelDependencies, options: ModelAgentOptions = {}) {
    this.#endpoint = new Endpoint(provider, clock, options.silenceMs)
    this.#limits = config.agentLimits
    this.secrets = provider.key === null ? [] : [provider.key]
  }

  async work(assignment: Assignment): Promise<Outcome> {
    const { goal, report, addDelta, signal } = assignment
    using dialogue = new Dialogue({
      endpoint: this.#endpoint,
      limits: this.#limits,
      system: systemPrompt(assignment),
      goal,
      masks: this.#masks(Object.values(assignment.environment())),
      report,
      show: (text) => text !== '' && addDelta({ type: 'text', text }),
      signal,
    })
    return await asAgentError(new ToolLoop(assignment, dialogue).run())
  }

  async plan(planning: PlanRequest): Promise<AgentPlan> {
    const { report, signal } = planning
    using dialogue = new Dialogue({
      endpoint: this.#endpoint,
      limits: this.#limits,
      system: PLANNING,
      goal: planningGoal(planning),
      masks: this.#masks([]),
      report,
      show: () => {},
      signal,
    })
    return await asAgentError(makePlan(planning, dialogue))
  }

  #masks(secrets: readonly string[]): Masks {
    const masks = new Masks()
    masks.add([...secrets, ...this.secrets])
    return masks
  }
}

/** Turns a failure of the endpoint into an AgentError, whose message the caller reads. */
const asAgentError = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error) => {
    throw error instanceof EndpointFailure ? new AgentError(error.message) : error
  })
