import type { Schema } from '../../contract/openapi/model.ts'
import type { ServerEvent } from './events.ts'

/** How to follow an operation whose event stream ends. */
interface FollowRule {
  /** Returns an event as text for a person; empty if it has none. */
  textOf(event: ServerEvent): string
  /** Reports whether the operation may now wait for the caller. */
  mayWait?(event: ServerEvent): boolean
  /**
   * How to check that it waits: the path of its state, derived from the operation's own path, and a test of the
   * response.
   */
  state?: { path: (path: string) => string; waits: (response: unknown) => boolean }
}

/** The schema of the `follow` argument. */
export const FOLLOW_SCHEMA: Schema = {
  type: 'boolean',
}

/** Phases in which a bring-up goes no further by itself. */
const LAST_PHASES: ReadonlySet<unknown> = new Set(['ready', 'failed', 'awaiting_secrets', null, undefined])

/** Reports whether a project's bring-up is under way. */
export const projectWaits = (project: Readonly<Record<string, unknown>>): boolean =>
  !LAST_PHASES.has(project.init_phase)

/**
 * Keyed by operation id. A project's log never ends, so it cannot be followed. The bring-up of a project and a
 * publication are followed by other means than their own event stream.
 */
const FOLLOW_RULES: Readonly<Record<string, FollowRule>> = {
  'tasks.events': {
    textOf: ({ event, data }) => taskText(event, data),
    mayWait: ({ event }) => event === 'question',
    state: {
      path: (path) => path.replace(/\/events$/, ''),
      waits: (response) => (response as { task?: { status?: unknown } }).task?.status === 'awaiting_input',
    },
  },
  'deployments.logs': { textOf: () => '' },
  'projects.get': { textOf: () => '' },
  'projects.init': { textOf: () => '' },
  'builds.logs': {
    textOf: ({ event, data }) => (event === 'line' ? `${data.source}: ${data.text}\n` : ''),
  },
}

/** Returns how to follow an operation, or undefined if it cannot be followed. */
export const followRule = (operationId: string): FollowRule | undefined => FOLLOW_RULES[operationId]

/** Reports whether an operation's tool takes `follow`. */
export const isFollowable = (operationId: string): boolean => Object.hasOwn(FOLLOW_RULES, operationId)

/** Returns an event of a transcript as text. Output is reported piece by piece, and not again when it is complete. */
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
