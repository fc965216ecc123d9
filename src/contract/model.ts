import { type TSchema, t } from 'elysia'
import { COMPUTES } from '../config/compute.ts'
import { ERROR_STATUS, type ErrorCode } from '../errors.ts'
import { API_OPERATION_IDS } from './operations.ts'
import { integer, oneOf } from './schema.ts'

/** The shape of every failure (specification, "Errors"). */
export const ErrorBody = t.Object(
  {
    error: oneOf(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]], {
      $id: 'ErrorCode',
      description: 'Machine-readable code of a failure. Later versions may have others.',
    }),
    message: t.String({ description: 'Human-readable sentence: the cause and the remedy.' }),
  },
  { $id: 'ErrorBody', additionalProperties: true },
)

/** Response of every removal. */
export const DeleteResult = t.Object(
  { id: t.String(), deleted: t.Literal(true) },
  { $id: 'DeleteResult', additionalProperties: true },
)

/** Response of what removes several things at once. */
export const DeletedCount = t.Object(
  { deleted: integer({ minimum: 0, description: 'How many were removed.' }) },
  { $id: 'DeletedCount', additionalProperties: true },
)

/**
 * Returns the shape of an event of a stream, for documents: its name, and its data as parsed JSON.
 *
 * @param $id ends in `Event`
 * @param events the data by the name of the event
 */
export const streamEvent = ($id: string, events: Readonly<Record<string, TSchema>>) =>
  t.Union(
    Object.entries(events).map(([event, data]) =>
      t.Object(
        {
          event: t.Literal(event),
          data,
          id: t.Optional(t.String({ description: 'For `Last-Event-ID`, where the stream can be resumed.' })),
        },
        { $id: $id.replace(/Event$/, `${event.charAt(0).toUpperCase()}${event.slice(1)}Event`) },
      ),
    ),
    { $id, description: 'An event of a stream: its name, and its data as parsed JSON.' },
  )

/** The data of an event `gap`: entries that are no longer kept are missing here. */
export const Gap = t.Object({}, { $id: 'Gap' })

/** Longest wait of a request of the API for an object to settle, milliseconds. @bound client */
const MAX_SETTLE_MS = 30_000

/** The query of an operation that can wait until what it reads has settled. */
export const SettleQuery = t.Object(
  {
    wait_ms: t.Optional(
      integer({
        minimum: 0,
        maximum: MAX_SETTLE_MS,
        description:
          'Milliseconds of real time to wait until it goes no further by itself. Then, or when they are over, the response shows its current state; without it at once.',
      }),
    ),
  },
  { additionalProperties: true },
)

/** What runs servers. */
export const ComputeKind = oneOf([...COMPUTES], { $id: 'ComputeKind', description: 'What runs servers.' })

/** The id of an operation of the API. */
export const ApiOperation = oneOf([...API_OPERATION_IDS] as [string, ...string[]], {
  $id: 'OperationId',
  description: 'The id of an operation of the API, such as `exec.run`.',
})

/** A shape that documents name. */
type Named = TSchema & { $id?: string }

/** Returns the shape of a response with one object: `envelope('server', Server)` is `ServerEnvelope`. */
export const envelope = <Key extends string, Shape extends Named>(key: Key, shape: Shape) =>
  t.Object({ [key]: shape } as Record<Key, Shape>, {
    $id: `${shape.$id}Envelope`,
    additionalProperties: true,
  })

/** Returns the shape of a response with a list: `listOf('servers', Server)` is `ServerList`. */
export const listOf = <Key extends string, Shape extends Named>(key: Key, shape: Shape) =>
  t.Object({ [key]: t.Array(shape) } as Record<Key, ReturnType<typeof t.Array<Shape>>>, {
    $id: `${shape.$id}List`,
    additionalProperties: true,
  })
