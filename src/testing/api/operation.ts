import { CloneType } from '@sinclair/typebox'
import type { TSchema } from 'elysia'
import { type ErrorStatus, EVENT_STREAM, FAILURES } from '../../contract/operation.ts'
import { tagOf } from './tags.ts'

/** What a call of the control API says of itself beside its request shapes. */
interface ControlFacts<Success> {
  summary: string
  description?: string
  /** What comes as an event stream where the caller accepts one: the events and their data. */
  events?: string
  /** Status → shape of a success. */
  success: Success
  /** Statuses of failures beside those that the document adds by itself: 400 with a body or query, 401, 403, 413. */
  errors?: readonly ErrorStatus[]
}

/** What its route declares, of which Elysia infers the handler's types. */
interface Declared<Success> {
  response: Success
  detail: {
    operationId: string
    summary: string
    description?: string
    tags: string[]
    /** Empty where no credential is needed. */
    security?: []
    [EVENT_STREAM]?: string
    [FAILURES]: ErrorStatus[]
  }
}

interface Shapes {
  body?: TSchema
  query?: TSchema
}

/**
 * One call of the control API that needs the admin token: all that its route declares, and that its
 * document reads from it. It stands in no document of the API, from which clients of the hosted service
 * are made.
 *
 * @param id such as `control.clock.read`; its noun gives the group in the document
 * @param shapes the request's body and query, where it has them
 */
export function controlOperation<
  const Success extends Record<number, TSchema>,
  const Given extends Shapes = Record<never, never>,
>(
  id: string,
  facts: ControlFacts<Success>,
  shapes: Given = {} as Given,
): Declared<Success> & Given & { admin: true } {
  return { ...own(shapes), ...declared(id, facts), admin: true }
}

/** One call that needs no credential, else as `controlOperation`. */
export function openControlOperation<
  const Success extends Record<number, TSchema>,
  const Given extends Shapes = Record<never, never>,
>(id: string, facts: ControlFacts<Success>, shapes: Given = {} as Given): Declared<Success> & Given {
  const { response, detail } = declared(id, facts)
  return { ...own(shapes), response, detail: { ...detail, security: [] } }
}

const declared = <Success extends Record<number, TSchema>>(
  id: string,
  { summary, description, events, success, errors = [] }: ControlFacts<Success>,
): Declared<Success> => ({
  response: own(success),
  detail: {
    operationId: id,
    summary,
    ...(description ? { description } : {}),
    ...(events ? { [EVENT_STREAM]: events } : {}),
    [FAILURES]: [...errors],
    tags: [tagOf(id)],
  },
})

/**
 * Copies of the shapes for this app alone: Elysia writes into those that it compiles, and what an app has
 * been asked before must not change how the document describes it.
 */
const own = <Kept extends object>(shapes: Kept): Kept =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, CloneType(shape)])) as Kept
