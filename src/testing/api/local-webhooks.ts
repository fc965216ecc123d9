import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { ControlParts } from './parts.ts'

/** The id of the setting in messages of changes. */
const LOCAL_WEBHOOKS_ID = 'local-webhooks'

const FIELDS = {
  allowed: t.Boolean({ description: 'Whether webhooks may use http and loopback addresses.' }),
}
export const ShownLocalWebhooks = t.Object(FIELDS, { $id: 'LocalWebhooks' })
const LocalWebhooksUpdate = t.Object(FIELDS, { $id: 'LocalWebhooksUpdate', additionalProperties: false })

/** Serves `/_berth/local-webhooks`: whether webhooks may lead to this machine. */
export const localWebhooksRoutes = ({
  access,
  services: { localWebhooks: setting, changes },
}: ControlParts) =>
  new Elysia({ prefix: '/_berth/local-webhooks' })
    .use(access)
    .get(
      '',
      () => ({ allowed: setting.allowed }),
      operation('control.localWebhooks.get', {
        access: 'admin',
        summary: 'Whether webhooks may lead to this machine',
        description: 'At the start as `--allow-local-webhooks` says.',
        success: { 200: ShownLocalWebhooks },
      }),
    )
    .patch(
      '',
      ({ body: { allowed } }) => {
        setting.allowed = allowed
        changes.notify('local_webhooks', LOCAL_WEBHOOKS_ID, null)
        return { allowed }
      },
      operation(
        'control.localWebhooks.update',
        {
          access: 'admin',
          summary: 'Allow webhooks to this machine, or no longer',
          description:
            'Holds until berth stops, also over a reset and a restored snapshot. If it is taken back, deliveries to http and loopback addresses fail from then on.',
          success: { 200: ShownLocalWebhooks },
        },
        { body: LocalWebhooksUpdate },
      ),
    )
