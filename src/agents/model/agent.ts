import { Type } from '@sinclair/typebox'
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
import { ModelEndpoint } from './endpoint.ts'
import { EndpointFailure } from './failures.ts'
import { PLANNING, planningGoal, systemPrompt } from './prompts.ts'
import { anthropicProvider, type ModelProvider, openaiProvider } from './providers.ts'
import type { ModelResponse } from './response.ts'
import { ToolLoop } from './tool-loop.ts'
import { functionTool, MalformedCall, readToolInput } from './tools.ts'

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
  readonly #endpoint: ModelEndpoint
  readonly #limits: AgentLimits
  readonly secrets: readonly string[]

  constructor(
    provider: ModelProvider,
    { clock, config }: ModelDependencies,
    options: ModelAgentOptions = {},
  ) {
    this.#endpoint = new ModelEndpoint(provider, clock, options.silenceMs)
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

/** How often a model may try. */
const ATTEMPTS = 2

const PLAN = Type.Object({
  template: Type.String({ description: 'id of the template' }),
  steps: Type.String({ minLength: 1, description: 'Markdown' }),
})

const TOOL = functionTool('plan', 'Gives the plan.', PLAN)

/** Has a model make a plan. @throws AgentError if it makes none, or as `Dialogue.ask` does */
async function makePlan({ templates }: PlanRequest, dialogue: Dialogue): Promise<AgentPlan> {
  const known = templates.map(({ id }) => id)
  let problem = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const response = await dialogue.request([TOOL])
    if (response.stop === 'refusal' && response.calls.length === 0) {
      throw new AgentError(`The model declines to plan this.${dialogue.lastWords}`)
    }
    try {
      return readPlan(response, known)
    } catch (error) {
      if (!(error instanceof MalformedCall)) throw error
      problem = error.message
      rejectCalls(dialogue, response, `${problem} Call the tool plan, once.`)
    }
  }
  throw new AgentError(`The model made no plan that can be used, tried ${ATTEMPTS} times: ${problem}`)
}

/** Reads the plan: the arguments of the call or, from models that call no tools, JSON in the text. */
function readPlan({ calls, text }: ModelResponse, known: readonly string[]): AgentPlan {
  const called = calls.find(({ toolName }) => toolName === TOOL.name)?.input
  const written = /\{.*\}/s.exec(text)?.[0]
  const given = called ?? written
  if (given === undefined) throw new MalformedCall('There is no plan in the answer.')
  const plan = readToolInput(PLAN, given)
  if (known.includes(plan.template)) return plan
  throw new MalformedCall(
    `There is no template ${JSON.stringify(plan.template)}; there are ${known.join(', ')}.`,
  )
}

/** Reports a problem to the model. Every call must get a result. */
function rejectCalls(dialogue: Dialogue, response: ModelResponse, problem: string): void {
  const exchanges = response.calls.map(({ toolCallId: id, toolName: tool }) => ({
    id,
    tool,
    input: {},
    output: problem,
    ok: false,
  }))
  dialogue.add(response, exchanges, exchanges.length === 0 ? problem : null)
}
