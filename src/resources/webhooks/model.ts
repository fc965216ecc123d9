import { type TString, Type } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { oneOf, text } from '../../contract/schema.ts'
import { EVENT_NAMES } from '../events/names.ts'

/** Largest number of characters in a destination. @bound system */
export const URL_LIMIT = 2_048

/** The states of a delivery. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'disabled'] as const
export const DeliveryStatus = oneOf([...DELIVERY_STATUSES], { $id: 'DeliveryStatus' })
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** The name of an event, as a subscription lists it. */
export const SubscribedEvent = oneOf([...EVENT_NAMES], { $id: 'EventName' })

/** A URL to show. It was checked when it was set, with a stricter rule than Elysia's for this format. */
const Url = Type.Any({ type: 'string', format: 'uri' }) as unknown as TString

const fields = {
  id: t.String(),
  url: Url,
  events: t.Array(SubscribedEvent),
  created_at: t.String({ format: 'date-time' }),
}

/** A subscription. */
export const Webhook = t.Object(
  {
    ...fields,
    disabled_at: t.Nullable(t.String({ format: 'date-time' }), {
      description: 'When its receiver answered with 410, which switched it off; null while events are sent.',
    }),
  },
  { $id: 'Webhook', additionalProperties: true },
)
export type Webhook = Static<typeof Webhook>

/** The response to a creation, the only one with the secret. */
export const CreatedWebhook = t.Object(
  {
    ...fields,
    secret: t.String({
      description: 'Signing secret, `whsec_` and base64 of 32 bytes. It is shown this once.',
    }),
  },
  { $id: 'CreatedWebhook', additionalProperties: true },
)
export type CreatedWebhook = Static<typeof CreatedWebhook>

/** Parameters of a new subscription. */
export const WebhookCreate = t.Object(
  {
    url: text({
      minLength: 1,
      maxLength: URL_LIMIT,
      format: 'uri',
      description: 'Where to send the events: a public https URL without credentials.',
    }),
    events: t.Optional(
      t.Array(SubscribedEvent, {
        description: 'Names of the events to send; left out or empty: all of them.',
      }),
    ),
  },
  { $id: 'WebhookCreate', additionalProperties: false },
)
export type WebhookCreate = Static<typeof WebhookCreate>
