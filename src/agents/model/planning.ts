import { Type } from '@sinclair/typebox'
import { AgentError, type AgentPlan, type PlanRequest } from '../agent.ts'
import type { Dialogue } from './dialogue.ts'
import type { ModelResponse } from './response.ts'
import { functionTool, MalformedCall, readInput } from './tool-input.ts'

/** How often a model may try. */
const ATTEMPTS = 2

const PLAN = Type.Object({
  template: Type.String({ description: 'id of the template' }),
  steps: Type.String({ minLength: 1, description: 'Markdown' }),
})

const TOOL = functionTool('plan', 'Gives the plan.', PLAN)

/** Has a model make a plan. @throws AgentError if it makes none, or as `Dialogue.ask` does */
export async function makePlan({ templates }: PlanRequest, dialogue: Dialogue): Promise<AgentPlan> {
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
  const plan = readInput(PLAN, given)
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
