import { type Static, t } from 'elysia'
import { integer, NOT_BLANK, oneOf, text } from '../../contract/schema.ts'

const TASK_STATUSES = ['running', 'completed', 'failed', 'awaiting_input', 'cancelled'] as const

/** State of a task. */
export const TaskStatus = oneOf([...TASK_STATUSES])
export type TaskStatus = Static<typeof TaskStatus>

/** A goal that an agent works on inside a server. */
export const Task = t.Object(
  {
    id: t.String(),
    serverId: t.String(),
    goal: t.String(),
    status: TaskStatus,
    createdAt: t.String({ format: 'date-time' }),
    result: t.Optional(t.String({ description: 'What came of it, or why it failed.' })),
    question: t.Optional(
      t.String({ description: 'What the agent needs from the caller, while the status is awaiting_input.' }),
    ),
  },
  { $id: 'Task', additionalProperties: false },
)
export type Task = Static<typeof Task>

/** The response to a task's creation. */
export const CreatedTask = t.Object(
  { task_id: t.String(), status: TaskStatus },
  { $id: 'CreatedTask', additionalProperties: true },
)
export type CreatedTask = Static<typeof CreatedTask>

/** Most characters in a goal. @bound client */
const MAX_GOAL = 100_000

/** Most characters in an answer. @bound client */
const MAX_ANSWER = 1024 * 1024

/** What the agent is to reach. */
export const TaskCreate = t.Object(
  {
    goal: text({
      minLength: 1,
      maxLength: MAX_GOAL,
      pattern: NOT_BLANK,
      description: 'What is to be reached, in plain words; the scripted agent also takes directives.',
    }),
  },
  { $id: 'TaskCreate', additionalProperties: true, examples: [{ goal: 'Add a health check to the app' }] },
)
export type TaskCreate = Static<typeof TaskCreate>

/** What the agent asked for. */
export const TaskInput = t.Object(
  { answer: text({ maxLength: MAX_ANSWER }) },
  { $id: 'TaskInput', additionalProperties: true, examples: [{ answer: 'Yes, go on.' }] },
)
export type TaskInput = Static<typeof TaskInput>

/** What an event of a transcript is about. */
const TaskEventType = oneOf([
  'status',
  'message',
  'toolCall',
  'toolResult',
  'terminal',
  'question',
  'answer',
  'usage',
  'notice',
])

/** Arguments and results of a tool. */
const toolData = (description: string) => t.Optional(t.Record(t.String(), t.Unknown(), { description }))

/** One event of a task's transcript: which fields it has goes by its type. */
export const TaskEvent = t.Object(
  {
    seq: integer({ minimum: 1, description: 'Counts the events of the task.' }),
    at: t.String({ format: 'date-time' }),
    type: TaskEventType,
    status: t.Optional(
      oneOf([...TASK_STATUSES], { description: 'Of `status`: what the task is from then on.' }),
    ),
    result: t.Optional(t.String({ description: 'Of `status`: what came of the task.' })),
    text: t.Optional(t.String({ description: 'Of `message`, `terminal` and `notice`.' })),
    call: t.Optional(t.String({ description: 'Of `toolCall` and `toolResult`: which use of a tool it is.' })),
    tool: t.Optional(t.String({ description: 'Of `toolCall` and `toolResult`.' })),
    input: toolData('Of `toolCall`.'),
    ok: t.Optional(t.Boolean({ description: 'Of `toolResult`.' })),
    output: toolData('Of `toolResult`.'),
    question: t.Optional(t.String({ description: 'Of `question`.' })),
    answer: t.Optional(t.String({ description: 'Of `answer`.' })),
    inputTokens: t.Optional(t.Number({ description: 'Of `usage`: since the work began.' })),
    outputTokens: t.Optional(t.Number({ description: 'Of `usage`: since the work began.' })),
    cost: t.Optional(t.Number({ description: 'Of `usage`: in US dollars, if prices are known.' })),
  },
  { $id: 'TaskEvent', additionalProperties: true },
)
export type TaskEvent = Static<typeof TaskEvent>

/** From where on a transcript is read. */
export const TaskEventsQuery = t.Object({
  after: t.Optional(
    integer({ minimum: 0, description: 'Only the events that come after the one with this `seq`.' }),
  ),
})
