import type { TProperties } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { ErrorBody, Gap, streamEvent } from '../../contract/model.ts'
import { integer, NOT_BLANK, oneOf, text, used } from '../../contract/schema.ts'
import { OutputStreamName } from '../exec/model.ts'

const TASK_STATUSES = ['running', 'completed', 'failed', 'awaiting_input', 'cancelled'] as const

/** State of a task. */
export const TaskStatus = oneOf([...TASK_STATUSES], { $id: 'TaskStatus' })
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

/** Fields of every event of a transcript. */
const EVENT_FIELDS = {
  seq: integer({ minimum: 1, description: 'Counts the events of the task.' }),
  at: t.String({ format: 'date-time' }),
}

/** Returns the shape of the events of one type. */
const eventOf = <Type extends string, Fields extends TProperties>(type: Type, fields: Fields) =>
  t.Object(
    { ...EVENT_FIELDS, type: t.Literal(type), ...fields },
    { $id: `${type.charAt(0).toUpperCase()}${type.slice(1)}Event`, additionalProperties: true },
  )

const call = t.String({ description: 'Which use of a tool it is.' })
const toolData = t.Record(t.String(), t.Unknown())
const tokens = t.Number({ description: 'Since the work began.' })

/** The events of a transcript by their types. */
const TASK_EVENTS = {
  status: eventOf('status', {
    status: used(TaskStatus, 'What the task is from then on.'),
    result: t.Optional(t.String({ description: 'What came of the task.' })),
  }),
  message: eventOf('message', { text: t.String() }),
  toolCall: eventOf('toolCall', { call, tool: t.String(), input: toolData }),
  toolResult: eventOf('toolResult', { call, tool: t.String(), ok: t.Boolean(), output: toolData }),
  terminal: eventOf('terminal', { text: t.String() }),
  question: eventOf('question', { question: t.String() }),
  answer: eventOf('answer', { answer: t.String() }),
  usage: eventOf('usage', {
    inputTokens: tokens,
    outputTokens: tokens,
    cost: t.Optional(t.Number({ description: 'In US dollars, if prices are known.' })),
  }),
  notice: eventOf('notice', { text: t.String() }),
}

/** One event of a task's transcript: which fields it has goes by its type. */
export const TaskEvent = t.Union(
  [
    TASK_EVENTS.status,
    TASK_EVENTS.message,
    TASK_EVENTS.toolCall,
    TASK_EVENTS.toolResult,
    TASK_EVENTS.terminal,
    TASK_EVENTS.question,
    TASK_EVENTS.answer,
    TASK_EVENTS.usage,
    TASK_EVENTS.notice,
  ],
  { $id: 'TaskEvent' },
)
export type TaskEvent = Static<typeof TaskEvent>

const offset = integer({ minimum: 0, description: 'Characters before it.' })

/** An event of a transcript that is followed. */
export const TaskStreamEvent = streamEvent('TaskStreamEvent', {
  ...TASK_EVENTS,
  output: t.Object(
    { type: t.Literal('output'), call, stream: OutputStreamName, offset, text: t.String() },
    { $id: 'OutputDelta' },
  ),
  text: t.Object({ type: t.Literal('text'), offset, text: t.String() }, { $id: 'TextDelta' }),
  gap: Gap,
  error: ErrorBody,
})

/** From where on a transcript is read. */
export const TaskEventsQuery = t.Object({
  after: t.Optional(
    integer({ minimum: 0, description: 'Only the events that come after the one with this `seq`.' }),
  ),
})
