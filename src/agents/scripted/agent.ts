import type { Clock } from '../../runtime/clock.ts'
import { orAborted } from '../../runtime/wait.ts'
import { type Agent, AgentError, type Assignment, type Outcome } from '../agent.ts'
import { ToolError } from '../workbench/search.ts'
import { parseDirectives } from './directives.ts'
import { describeCommand, describeDone, describeIdle, describeOutput, firstLine } from './result.ts'
import type { ScenarioStep } from './scenario.ts'
import type { ScenarioStore } from './store.ts'
import { fillCommand, fillTemplate } from './template.ts'

/** Dependencies of the scripted agent. */
interface ScriptedAgentDependencies {
  scenarios: ScenarioStore
  clock: Clock
}

/**
 * Follows a script, without any model: the steps of the first scenario that matches the goal, else the directives in
 * the goal. The same goal on the same files reports the same events, to the byte.
 */
export class ScriptedAgent implements Agent {
  readonly #dependencies: ScriptedAgentDependencies

  constructor(parts: ScriptedAgentDependencies) {
    this.#dependencies = parts
  }

  async work(assignment: Assignment): Promise<Outcome> {
    const { scenarios, clock } = this.#dependencies
    const { goal, accountId = null, signal } = assignment
    signal.throwIfAborted()
    const found = await scenarios.find(goal, accountId)
    if (found) {
      assignment.report({
        type: 'notice',
        text: `Follows the scenario ${JSON.stringify(firstLine(found.scenario.title))}.`,
      })
      return runSteps(found.scenario.steps, { assignment, clock, values: new Map(found.values) })
    }
    const steps = parseDirectives(goal)
    if (steps.length > 0) return runSteps(steps, { assignment, clock, values: new Map() })
    return { status: 'completed', result: describeIdle(goal), idle: true }
  }
}

/** The objects that steps use. */
interface StepContext {
  readonly assignment: Assignment
  readonly clock: Clock
  /** Values by name; steps add theirs. */
  readonly values: Map<string, string>
}

/** The result of a step: the end of the work, or a short description of the work. */
type StepResult = Outcome | { readonly done: string }

/**
 * Runs steps one after the other, until one ends the work or none is left.
 *
 * @throws AgentError if a step cannot be run here; the reason of the assignment's signal
 */
async function runSteps(steps: readonly ScenarioStep[], context: StepContext): Promise<Outcome> {
  const { signal } = context.assignment
  const done: string[] = []
  for (const step of steps) {
    signal.throwIfAborted()
    const result = await runStep(step, context)
    signal.throwIfAborted()
    if ('status' in result) return result
    done.push(result.done)
  }
  return { status: 'completed', result: describeDone(done) }
}

async function runStep(step: ScenarioStep, context: StepContext): Promise<StepResult> {
  const { assignment, values } = context
  const { workbench } = assignment
  switch (step.kind) {
    case 'run':
      return runCommand(step, context)
    case 'write': {
      const path = fillTemplate(step.path, values)
      return useTool(`Writing ${path}`, async () => {
        await workbench.write(path, fillTemplate(step.content, values))
        return { done: `wrote ${path}` }
      })
    }
    case 'read': {
      const path = fillTemplate(step.path, values)
      return useTool(`Reading ${path}`, async () => {
        const { content } = await workbench.read(path)
        if (step.as !== null) values.set(step.as, content)
        return { done: `read ${path}` }
      })
    }
    case 'ask': {
      const question = fillTemplate(step.question, values)
      values.set(step.as, await ask(question, assignment))
      return { done: `asked ${JSON.stringify(firstLine(question))}` }
    }
    case 'say': {
      const text = fillTemplate(step.text, values)
      assignment.report({ type: 'message', text })
      return { done: `said ${JSON.stringify(firstLine(text))}` }
    }
    case 'wait':
      await wait(step.ms, context)
      return { done: `waited ${step.ms / 1_000} s` }
    case 'hold':
      await hold(assignment)
      return { done: 'was held and released' }
    case 'complete':
      return { status: 'completed', result: fillTemplate(step.text, values) }
    case 'fail':
      return { status: 'failed', result: fillTemplate(step.text, values) }
  }
}

async function runCommand(
  step: Extract<ScenarioStep, { kind: 'run' }>,
  { assignment, values }: StepContext,
): Promise<StepResult> {
  const command = describeCommand(step.command, values)
  return useTool(`Running ${command}`, async () => {
    const result = await assignment.workbench.run(fillCommand(step.command, values), {
      ...(step.timeoutMs === null ? {} : { timeoutMs: step.timeoutMs }),
      ...(step.cwd === '' ? {} : { cwd: step.cwd }),
    })
    const { exitCode, timedOut, stdout, stderr, refused = [] } = result
    const printed = describeOutput(stderr.trim() === '' ? stdout : stderr)
    const outputText = [printed, ...refused].join('\n')
    if (timedOut)
      return { status: 'failed', result: `The command ${command} took too long and was ended${outputText}` }
    if (step.expect !== 'any' && exitCode !== step.expect) {
      const wanted = step.expect === 0 ? '' : ` instead of ${step.expect}`
      return {
        status: 'failed',
        result: `The command ${command} ended with exit code ${exitCode}${wanted}${outputText}`,
      }
    }
    // Without line ends, as in a shell's $(…).
    if (step.as !== null) values.set(step.as, stdout.replace(/\n+$/, ''))
    return { done: exitCode === 0 ? `ran ${command}` : `ran ${command} (exit code ${exitCode})` }
  })
}

/** Turns a tool's error into a failed outcome with a sentence. */
async function useTool(activity: string, use: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await use()
  } catch (error) {
    if (error instanceof ToolError)
      return { status: 'failed', result: `${activity} failed: ${error.message}` }
    throw error
  }
}

function ask(question: string, { ask, signal }: Assignment): Promise<string> {
  if (ask) return orAborted(ask(question), signal)
  throw new AgentError(
    `The step "ask" has nobody to ask ${JSON.stringify(firstLine(question))}: only a task has somebody who answers. Leave it out of what builds do.`,
  )
}

function hold({ hold, signal }: Assignment): Promise<void> {
  if (hold) return orAborted(hold(), signal)
  throw new AgentError(
    'The step "hold" has nobody who releases it: only tasks are released. Leave it out of what builds do.',
  )
}

/** Waits by berth's clock. */
async function wait(ms: number, { assignment: { id, signal }, clock }: StepContext): Promise<void> {
  const elapsed = Promise.withResolvers<void>()
  const pass = (): Promise<void> => {
    elapsed.resolve()
    // A caller that moves the clock by several waits at once must find the next one set.
    return new Promise((resolve) => setImmediate(resolve))
  }
  const timer = clock.after(ms, pass, { name: 'task.continue', id })
  try {
    await orAborted(elapsed.promise, signal)
  } finally {
    timer.cancel()
  }
}
