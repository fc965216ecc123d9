import { orAborted } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { AgentError, type Assignment, type Outcome } from '../agent.ts'
import { ToolError } from '../workbench/errors.ts'
import { describeDone, endOf, oneLine } from './result.ts'
import type { Step } from './scenario.ts'
import { fill, fillCommand } from './template.ts'

/** What steps run with. */
export interface StepContext {
  readonly assignment: Assignment
  readonly clock: Clock
  /** Values by name; steps add theirs. */
  readonly values: Map<string, string>
}

/** The result of a step: the end of the work, or a few words on what was done. */
type StepResult = Outcome | { readonly done: string }

/**
 * Runs steps one after the other, until one ends the work or none is left.
 *
 * @throws AgentError if a step cannot be run here; the reason of the assignment's signal
 */
export async function runSteps(steps: readonly Step[], stage: StepContext): Promise<Outcome> {
  const { signal } = stage.assignment
  const done: string[] = []
  for (const step of steps) {
    signal.throwIfAborted()
    const result = await runStep(step, stage)
    signal.throwIfAborted()
    if ('status' in result) return result
    done.push(result.done)
  }
  return { status: 'completed', result: describeDone(done) }
}

async function runStep(step: Step, stage: StepContext): Promise<StepResult> {
  const { assignment, values } = stage
  const { workbench } = assignment
  switch (step.does) {
    case 'run':
      return runCommand(step, stage)
    case 'write': {
      const path = fill(step.path, values)
      return useTool(`Writing ${path}`, async () => {
        await workbench.write(path, fill(step.content, values))
        return { done: `wrote ${path}` }
      })
    }
    case 'read': {
      const path = fill(step.path, values)
      return useTool(`Reading ${path}`, async () => {
        const { content } = await workbench.read(path)
        if (step.as !== null) values.set(step.as, content)
        return { done: `read ${path}` }
      })
    }
    case 'ask': {
      const question = fill(step.question, values)
      values.set(step.as, await ask(question, assignment))
      return { done: `asked ${JSON.stringify(oneLine(question))}` }
    }
    case 'say': {
      const text = fill(step.text, values)
      assignment.report({ type: 'message', text })
      return { done: `said ${JSON.stringify(oneLine(text))}` }
    }
    case 'wait':
      await wait(step.ms, stage)
      return { done: `waited ${step.ms / 1_000} s` }
    case 'hold':
      await hold(assignment)
      return { done: 'was held and released' }
    case 'complete':
      return { status: 'completed', result: fill(step.text, values) }
    case 'fail':
      return { status: 'failed', result: fill(step.text, values) }
  }
}

async function runCommand(
  step: Extract<Step, { does: 'run' }>,
  { assignment, values }: StepContext,
): Promise<StepResult> {
  const command = oneLine(step.command.text)
  return useTool(`Running ${command}`, async () => {
    const result = await assignment.workbench.run(fillCommand(step.command, values), {
      ...(step.timeoutMs === null ? {} : { timeoutMs: step.timeoutMs }),
      ...(step.cwd === '' ? {} : { cwd: step.cwd }),
    })
    const { exitCode, timedOut, stdout, stderr } = result
    const said = endOf(stderr.trim() === '' ? stdout : stderr)
    if (timedOut)
      return { status: 'failed', result: `The command ${command} took too long and was ended${said}` }
    if (step.expect !== 'any' && exitCode !== step.expect) {
      const wanted = step.expect === 0 ? '' : ` instead of ${step.expect}`
      return {
        status: 'failed',
        result: `The command ${command} ended with exit code ${exitCode}${wanted}${said}`,
      }
    }
    // As a shell's $(…) takes it.
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
    `The step "ask" has nobody to ask ${JSON.stringify(oneLine(question))}: only a task has somebody who answers. Leave it out of what builds do.`,
  )
}

function hold({ hold, signal }: Assignment): Promise<void> {
  if (hold) return orAborted(hold(), signal)
  throw new AgentError(
    'The step "hold" has nobody who releases it: only tasks are released. Leave it out of what builds do.',
  )
}

/** Waits by berth's clock. */
async function wait(ms: number, { assignment: { signal }, clock }: StepContext): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = clock.after(ms, () => {
    over.resolve()
    // A caller that moves the clock by several waits at once must find the next one set.
    return new Promise((resolve) => setImmediate(resolve))
  })
  try {
    await orAborted(over.promise, signal)
  } finally {
    timer.cancel()
  }
}
