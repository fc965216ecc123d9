import { Elysia, t } from 'elysia'
import { firstLine, ScenarioText } from '../../agents/scripted/scenarios.ts'
import { envelope } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { Task, type TaskEvent } from '../../resources/tasks/model.ts'
import type { ControlParts } from './parts.ts'

/** A scenario that repeats a task. */
const RecordedScenario = t.Object(
  {
    scenario: ScenarioText,
    notes: t.Array(t.String(), { description: 'Sentences on what it cannot repeat.' }),
  },
  { $id: 'RecordedScenario' },
)

/** Serves `/_berth/tasks`: the release of tasks that hold, and tasks as scenarios. */
export const controlTasksRoutes = ({ access, services: { tasks } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/tasks' })
    .use(access)
    .get(
      '/:taskId/scenario',
      async ({ params }) => {
        const { goal, events } = (await tasks()).record(params.taskId)
        return recordScenario(goal, events)
      },
      operation('control.tasks.scenario', {
        access: 'admin',
        summary: 'Make a scenario of what a task did',
        description:
          'Its commands with their exit codes, the files that it wrote and read, its messages, questions and result, as a scenario for the same goal. Nothing is set: look at it, and set it with `control.scenarios.replace`.',
        success: { 200: RecordedScenario },
        errors: [404],
      }),
    )
    .post(
      '/:taskId/release',
      async ({ params }) => ({ task: (await tasks()).release(params.taskId) }),
      operation('control.tasks.release', {
        access: 'admin',
        summary: "Let a task go on that waits in a scenario's step `hold`",
        description: 'A task that does not wait is refused.',
        success: { 200: envelope('task', Task) },
        errors: [400, 404],
      }),
    )

/** A scenario that repeats a task, and the parts that it cannot repeat. */
interface TaskScenario {
  readonly scenario: ScenarioText
  /** Sentences for the person who is to keep it. */
  readonly notes: string[]
}

type StepText = Record<string, unknown>

/** Most steps that are recorded; a scenario has at most 1,000. @bound owner */
const MAX_STEPS = 900

/** Tools whose uses change nothing that a later step needs. */
const LOOKING: ReadonlySet<string> = new Set(['list', 'search'])

/**
 * Makes a scenario of a task's transcript: its commands with their exit codes, the files that it wrote and read, its
 * messages, its questions and its result.
 */
function recordScenario(goal: string, events: readonly TaskEvent[]): TaskScenario {
  const results = new Map(
    events.flatMap((event) => (event.type === 'toolResult' ? [[event.call, event] as const] : [])),
  )
  const notes = new Set<string>()
  const steps = events.flatMap((event): StepText[] => stepsOf(event, results, notes))
  const kept = steps.slice(0, MAX_STEPS)
  if (kept.length < steps.length) notes.add(`Only the first ${MAX_STEPS} of ${steps.length} steps are here.`)
  const end = endOf(events, notes)
  if (JSON.stringify(kept).includes('***')) {
    notes.add('"***" stands for the value of a secret. Put a variable of the server in its place.')
  }
  return {
    scenario: {
      name: firstLine(goal),
      match: goal.trim(),
      steps: [...kept, ...end],
    } as ScenarioText,
    notes: [...notes],
  }
}

/** Returns the steps that repeat an event of a transcript, most often one or none. */
function stepsOf(event: TaskEvent, results: ReadonlyMap<string, ToolResult>, notes: Set<string>): StepText[] {
  switch (event.type) {
    case 'message':
      return isText(event.text) ? [{ say: escaped(event.text) }] : []
    case 'question':
      return isText(event.question) ? [{ ask: escaped(event.question) }] : []
    case 'answer':
      notes.add(
        'Later steps have the response of then in them. Write {{answer}} where that of the time belongs.',
      )
      return []
    case 'terminal':
      notes.add('What a program did on its own terminal cannot be repeated.')
      return []
    case 'toolCall':
      return toolSteps(event, results.get(event.call), notes)
    default:
      return []
  }
}

type ToolResult = Extract<TaskEvent, { type: 'toolResult' }>

function toolSteps(
  { tool, input }: Extract<TaskEvent, { type: 'toolCall' }>,
  result: ToolResult | undefined,
  notes: Set<string>,
): StepText[] {
  const { command, cwd, path, content } = input
  const output = result?.output ?? {}
  if (tool === 'run' && isText(command)) {
    const { exitCode, timedOut } = output
    if (typeof exitCode !== 'number' || timedOut === true) {
      notes.add(`The command ${firstLine(command)} did not come to its end, and is left out.`)
      return []
    }
    const where = isText(cwd) ? { cwd } : {}
    if (exitCode === 0 && !isText(cwd)) return [{ run: escaped(command) }]
    return [{ run: { command: escaped(command), ...where, ...(exitCode !== 0 && { expect: exitCode }) } }]
  }
  if (LOOKING.has(tool)) return []
  if (result?.ok !== true) {
    notes.add(`A use of "${tool}" that failed is left out.`)
    return []
  }
  if (tool === 'read' && isText(path)) return [{ read: escaped(path) }]
  if (tool === 'write' && isText(path) && typeof content === 'string') {
    if (input.truncated === true) notes.add(`The transcript has only the beginning of ${path}.`)
    return [{ write: { path: escaped(path), content, verbatim: true } }]
  }
  notes.add(`A use of "${tool}" cannot be repeated, and is left out.`)
  return []
}

/** Returns the step that ends the scenario as the task ended. */
function endOf(events: readonly TaskEvent[], notes: Set<string>): StepText[] {
  const last = events.findLast((event) => event.type === 'status')
  const result = isText(last?.result) ? escaped(last.result) : null
  if (last?.status === 'completed') return [{ complete: result ?? 'Done.' }]
  if (last?.status === 'failed') return [{ fail: result ?? 'Failed.' }]
  if (last?.status === 'cancelled') {
    notes.add('The task was cancelled. The scenario fails in its place.')
    return [{ fail: 'Cancelled.' }]
  }
  notes.add('The task is not over: the scenario holds at its end, until the task is released.')
  return [{ hold: true }]
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

/** Escapes text that looks like the place of a value. */
const escaped = (text: string): string => text.replaceAll(/\{\{ *[A-Za-z_]\w* *\}\}/g, '\\$&')
