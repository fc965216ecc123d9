import { Type } from '@sinclair/typebox'
import { AgentError, type Plan, type Planning } from '../agent.ts'
import type { Answer } from './answer.ts'
import type { Dialogue } from './dialogue.ts'
import { functionTool, MalformedCall, readInput } from './tool-input.ts'

/** How often a model may try. */
const ATTEMPTS = 2

const PLAN = Type.Object({
  template: Type.String({ description: 'id of the template' }),
  steps: Type.String({ minLength: 1, description: 'Markdown' }),
})

const TOOL = functionTool('plan', 'Gives the plan.', PLAN)

/** Has a model make a plan. @throws AgentError where it makes none, or as `Dialogue.ask` does */
export async function makePlan({ templates }: Planning, dialogue: Dialogue): Promise<Plan> {
  const known = templates.map(({ id }) => id)
  let problem = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const answer = await dialogue.ask([TOOL])
    if (answer.stop === 'refusal' && answer.calls.length === 0) {
      throw new AgentError(`The model declines to plan this.${dialogue.lastWords}`)
    }
    try {
      return readPlan(answer, known)
    } catch (error) {
      if (!(error instanceof MalformedCall)) throw error
      problem = error.message
      answerWrong(dialogue, answer, `${problem} Call the tool plan, once.`)
    }
  }
  throw new AgentError(`The model made no plan that can be used, tried ${ATTEMPTS} times: ${problem}`)
}

/** The plan in an answer: the arguments of its call, or JSON in its text, as models answer that call no tools. */
function readPlan({ calls, text }: Answer, known: readonly string[]): Plan {
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

/** Tells the model what is wrong: every call must get a result. */
function answerWrong(dialogue: Dialogue, answer: Answer, told: string): void {
  const exchanges = answer.calls.map(({ toolCallId: id, toolName: tool }) => ({
    id,
    tool,
    input: {},
    output: told,
    ok: false,
  }))
  dialogue.add(answer, exchanges, exchanges.length === 0 ? told : null)
}
