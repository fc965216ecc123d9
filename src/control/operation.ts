import type { TSchema } from 'elysia'

/** What a call of the control API says of itself. */
interface ControlFacts<Success> {
  summary: string
  /** Status → shape of a success. */
  success: Success
}

/** What its route declares, of which Elysia infers the handler's types. */
type Declared<Success> = {
  admin: true
  response: Success
  detail: { operationId: string; summary: string }
}

/**
 * One call of the control API that needs the admin token: all that its route declares. It stands in
 * no document of the API, from which clients of the hosted service are made.
 *
 * @param id such as `control.clock.read`
 * @param shapes the request's body and query, where it has them
 */
export function controlOperation<
  const Success extends Record<number, TSchema>,
  const Shapes extends { body?: TSchema; query?: TSchema },
>(id: string, facts: ControlFacts<Success>, shapes: Shapes): Declared<Success> & Shapes
export function controlOperation<const Success extends Record<number, TSchema>>(
  id: string,
  facts: ControlFacts<Success>,
): Declared<Success>
export function controlOperation(
  id: string,
  { summary, success }: ControlFacts<Record<number, TSchema>>,
  shapes: object = {},
): unknown {
  return {
    ...shapes,
    admin: true,
    response: success,
    detail: { operationId: id, summary },
  }
}
