import type { Schema } from '../../contract/openapi/model.ts'
import type { ServerEvent } from './events.ts'

/** How an operation whose event stream comes to an end is followed. */
interface Followed {
  /** What an event says, as text; empty where it says nothing to a person. */
  told(event: ServerEvent): string
  /** Whether it may be that nothing more comes until the caller does something. */
  mayWait?(event: ServerEvent): boolean
  /** Where that is seen, seen from the operation's path, and how. */
  state?: { path: (path: string) => string; waits: (answer: unknown) => boolean }
}

/** What `follow` says of itself. */
export const FOLLOW_SCHEMA: Schema = {
  type: 'boolean',
  description: 'Wait until it is over, then answer. Without it the answer is what there is now.',
}

/** By operation id. A project's log never ends, so that there is nothing to wait for. */
const FOLLOWED: Readonly<Record<string, Followed>> = {
  'tasks.events': {
    told: ({ event, data }) => taskText(event, data),
    mayWait: ({ event }) => event === 'question',
    state: {
      path: (path) => path.replace(/\/events$/, ''),
      waits: (answer) => (answer as { task?: { status?: unknown } }).task?.status === 'awaiting_input',
    },
  },
  'builds.logs': {
    told: ({ event, data }) => (event === 'line' ? `${data.source}: ${data.text}\n` : ''),
  },
}

/** How an operation is followed; undefined where it cannot be. */
export const followed = (operationId: string): Followed | undefined => FOLLOWED[operationId]

/** Whether an operation's tool takes `follow`. */
export const follows = (operationId: string): boolean => Object.hasOwn(FOLLOWED, operationId)

/** What an event of a transcript says; output is told piece by piece, and not again when it is whole. */
function taskText(event: string, data: Readonly<Record<string, unknown>>): string {
  switch (event) {
    case 'output':
      return String(data.text)
    case 'message':
    case 'notice':
    case 'terminal':
      return `${data.text}\n`
    case 'toolCall':
      return `${data.tool} ${JSON.stringify(data.input)}\n`
    case 'question':
      return `Question: ${data.question}\n`
    case 'status':
      return `Status: ${data.status}\n`
    default:
      return ''
  }
}
