import { Elysia, status } from 'elysia'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { CreatedWebhook, Webhook, WebhookCreate } from './model.ts'
import type { WebhooksService } from './service.ts'

/** Serves `/webhooks`: subscriptions to events. */
export const webhooksRoutes = (access: AccessControl, webhooks: () => Promise<WebhooksService>) =>
  new Elysia({ prefix: '/webhooks' })
    .use(access)
    .get(
      '',
      async ({ caller }) => ({ webhooks: (await webhooks()).list(caller) }),
      operation('webhooks.list', {
        access: 'account',
        summary: 'List webhooks',
        description: 'Newest first. Their signing secrets are not shown.',
        success: { 200: listOf('webhooks', Webhook) },
        errors: [401, 403],
      }),
    )
    .post(
      '',
      async ({ caller, body }) => status(201, await (await webhooks()).create(caller, body)),
      operation(
        'webhooks.create',
        {
          access: 'account',
          summary: 'Subscribe to events',
          description:
            'Events that happen from now on are sent as signed POST requests (Standard Webhooks). The destination must be public and https; a name that does not resolve yet is accepted and checked at every delivery.',
          secret: true,
          success: { 201: CreatedWebhook },
          errors: [400, 401, 403],
        },
        { body: WebhookCreate },
      ),
    )
    .post(
      '/:webhookId/enable',
      async ({ caller, params: { webhookId } }) => ({
        webhook: (await webhooks()).enable(caller, webhookId),
      }),
      operation('webhooks.enable', {
        access: 'account',
        summary: 'Switch a webhook on again',
        description:
          'A receiver that answers with 410 switches its webhook off. Events that happen from now on are sent again; those that happened meanwhile are not. Changes nothing if the webhook is on.',
        success: { 200: envelope('webhook', Webhook) },
        errors: [401, 403, 404],
      }),
    )
    .delete(
      '/:webhookId',
      async ({ caller, params: { webhookId } }) => {
        const service = await webhooks()
        service.delete(caller, webhookId)
        return { id: webhookId, deleted: true as const }
      },
      operation('webhooks.delete', {
        access: 'account',
        summary: 'End a subscription',
        description: 'Ends an attempt that is under way. Nothing more is sent.',
        success: { 200: DeleteResult },
        errors: [401, 403, 404],
      }),
    )
