import { Elysia, type Static, status, t } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { integer } from '../../contract/schema.ts'
import { notFound } from '../../errors.ts'
import { DeliveryStatus, SubscribedEvent } from '../../resources/webhooks/model.ts'
import type { Queries } from '../../storage/database.ts'
import type { ControlParts } from './parts.ts'

/** Number of listed items: by default and at most. */
const LIMIT = { default: 1_000, most: 100_000 }

const DeliveryAttempt = t.Object(
  {
    number: t.Number({ description: 'From 1.' }),
    at: t.String({ format: 'date-time' }),
    status: t.Nullable(t.Number({ description: 'Null if there was no response.' })),
    ms: t.Number(),
    error: t.Nullable(t.String(), { description: 'Why it failed.' }),
    request: t.Object(
      { headers: t.Record(t.String(), t.String()), body: t.String() },
      { $id: 'DeliveryRequest' },
    ),
    response: t.Nullable(
      t.Object(
        { headers: t.Record(t.String(), t.String()), body: t.String({ description: 'Its first KiB.' }) },
        { $id: 'DeliveryReply' },
      ),
    ),
  },
  { $id: 'DeliveryAttempt' },
)

/** A delivery as the control API shows it. */
export const Delivery = t.Object(
  {
    id: t.String(),
    webhook_id: t.String(),
    account_id: t.String(),
    event_id: t.String(),
    event: t.String(),
    url: t.String(),
    status: DeliveryStatus,
    created_at: t.String({ format: 'date-time' }),
    next_attempt_at: t.Nullable(t.String({ format: 'date-time' })),
    attempts: t.Array(DeliveryAttempt),
  },
  { $id: 'Delivery' },
)
export type Delivery = Static<typeof Delivery>

/** How the deliveries to a webhook went. */
const WebhookSummary = t.Object(
  {
    webhook_id: t.String(),
    account_id: t.String(),
    url: t.String(),
    pending: integer({ minimum: 0, description: 'Deliveries that are still attempted.' }),
    delivered: integer({ minimum: 0 }),
    failed: integer({ minimum: 0, description: 'Deliveries that are not attempted any more.' }),
    disabled: integer({
      minimum: 0,
      description: 'Deliveries that ended because the receiver answered with 410.',
    }),
    success_rate: t.Nullable(t.Number({ minimum: 0, maximum: 1 }), {
      description:
        'The share of the delivered and failed deliveries that were delivered; null while there are none.',
    }),
    attempts: integer({ minimum: 0 }),
    failed_attempts: integer({ minimum: 0 }),
    last_attempt_at: t.Nullable(t.String({ format: 'date-time' })),
    last_error: t.Nullable(t.String(), {
      description: 'Why the last attempt failed; null if it did not.',
    }),
  },
  { $id: 'WebhookSummary' },
)

const DeliveryQuery = t.Object(
  {
    webhook_id: t.Optional(t.String({ description: 'Those to one webhook.' })),
    event: t.Optional(SubscribedEvent),
    event_id: t.Optional(t.String({ description: 'Those of one event.' })),
    account_id: t.Optional(t.String({ description: 'Those of one account.' })),
    status: t.Optional(DeliveryStatus),
    limit: t.Optional(
      integer({
        minimum: 1,
        maximum: LIMIT.most,
        description: `At most so many; ${LIMIT.default} where nothing is said.`,
      }),
    ),
  },
  { additionalProperties: false },
)

/** Loaded when it is asked for: a start does not need it. */
const history = () => import('../../resources/webhooks/history.ts')

/** Serves `/_berth/deliveries`: deliveries to webhooks with their responses. */
export const deliveriesRoutes = ({ access, services: { queries, deliveries } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/deliveries' })
    .use(access)
    .get(
      '',
      async ({ query }) => {
        const { readDeliveries } = await history()
        const { webhook_id, event, event_id, account_id, limit = LIMIT.default } = query
        return {
          deliveries: readDeliveries(queries, {
            limit,
            ...(webhook_id === undefined ? {} : { webhookId: webhook_id }),
            ...(event === undefined ? {} : { event }),
            ...(event_id === undefined ? {} : { eventId: event_id }),
            ...(account_id === undefined ? {} : { accountId: account_id }),
            ...(query.status === undefined ? {} : { status: query.status }),
          }),
        }
      },
      operation(
        'control.deliveries.list',
        {
          access: 'admin',
          summary: 'Deliveries with their attempts, newest first',
          description:
            'Each attempt has the headers and body that were sent, and the headers and the first KiB of the response.',
          success: { 200: listOf('deliveries', Delivery) },
        },
        { query: DeliveryQuery },
      ),
    )
    .get(
      '/summary',
      async ({ query: { account_id } }) => ({
        webhooks: (await history()).summarizeDeliveries(queries, account_id),
      }),
      operation(
        'control.deliveries.summary',
        {
          access: 'admin',
          summary: 'How the deliveries to each webhook went',
          description: 'Also for webhooks that nothing was sent to yet, the newest webhook first.',
          success: { 200: listOf('webhooks', WebhookSummary) },
        },
        {
          query: t.Object(
            { account_id: t.Optional(t.String({ description: 'Those of one account.' })) },
            { additionalProperties: false },
          ),
        },
      ),
    )
    .get(
      '/:deliveryId',
      async ({ params: { deliveryId } }) => findOrThrow(queries, deliveryId),
      operation('control.deliveries.get', {
        access: 'admin',
        summary: 'One delivery with its attempts',
        description:
          'Each attempt has the headers and body that were sent, and the first KiB of the response.',
        success: { 200: Delivery },
        errors: [404],
      }),
    )
    .post(
      '/:deliveryId/retry',
      async ({ params: { deliveryId } }) => {
        if (!(await deliveries.retry(deliveryId))) throw deliveryNotFound(deliveryId)
        return status(202, await findOrThrow(queries, deliveryId))
      },
      operation('control.deliveries.retry', {
        access: 'admin',
        summary: 'Attempt a delivery at once, whatever became of it',
        description:
          'Also for a delivery that has succeeded, but not while its webhook is disabled. The response does not wait for the attempt.',
        success: { 202: Delivery },
        errors: [400, 404],
      }),
    )

async function findOrThrow(queries: Queries, id: string): Promise<Delivery> {
  const { readDeliveries } = await history()
  const [delivery] = readDeliveries(queries, { id, limit: 1 })
  if (!delivery) throw deliveryNotFound(id)
  return delivery
}

const deliveryNotFound = (id: string) => notFound(`The delivery ${JSON.stringify(id)}`)
