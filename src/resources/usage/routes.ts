import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { AccountUsage, ServerUsage, SingleServerUsage, UsageQuery } from './model.ts'
import type { UsageService } from './service.ts'

/** Serves `/usage` and `/servers/{serverId}/usage`. The service is loaded when it is first asked for. */
export const usageRoutes = (access: AccessControl, usage: () => Promise<UsageService>) =>
  new Elysia()
    .use(access)
    .get(
      '/servers/:serverId/usage',
      async ({ caller, params }) => ({ usage: await (await usage()).get(caller, params.serverId) }),
      operation('usage.get', {
        access: 'resource',
        summary: 'Measure what a server uses',
        description:
          'Its processors, memory, storage and processes now, each with its limit, and its open ports. Takes 250 ms if nobody has asked within the last 30 s. A sleeping server uses nothing and is not woken; looking does not keep a server awake.',
        success: { 200: t.Object({ usage: SingleServerUsage }) },
        errors: [401, 404, 502],
      }),
    )
    .get(
      '/usage/servers',
      async ({ caller }) => ({ servers: await (await usage()).list(caller) }),
      operation('usage.servers', {
        access: 'resource',
        summary: 'Measure what all servers use',
        description:
          'The same for every server that the key reaches, newest first, without ports. `storage_bytes` is as of the last measurement.',
        success: { 200: t.Object({ servers: t.Array(ServerUsage) }) },
        errors: [401],
      }),
    )
    .get(
      '/usage',
      async ({ caller, query }) => ({ usage: (await usage()).account(caller, query.days) }),
      operation(
        'usage.account',
        {
          access: 'account',
          summary: 'Show the credits of the account',
          description:
            'What the account has used of its monthly budget, and the credits of each day by server and kind. Days that are not known are left out, not shown as zero: see `known_since`.',
          success: { 200: t.Object({ usage: AccountUsage }) },
          errors: [400, 401, 403],
        },
        { query: UsageQuery },
      ),
    )
