import { Elysia } from 'elysia'
import { envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import type { Caller } from '../../http/caller.ts'
import { wantsEventStream } from '../../http/sse.ts'
import { credentialEnd, wantsSocket } from '../../http/web-socket.ts'
import type { ChangesService } from '../changes/service.ts'
import type { StreamRequest } from '../changes/streams.ts'
import {
  AccountUsage,
  MeasureQuery,
  ServerUsage,
  SingleServerUsage,
  UsageQuery,
  UsageStreamEvent,
} from './model.ts'
import type { UsageService } from './service.ts'

const LIVE =
  'As an event stream, or with the handshake of a WebSocket, berth measures every 2 s while somebody reads. The messages are as those of `GET /changes`: first `{"type": "ready"}`, then `{"type": "usage", "id": SERVER, "value": USAGE}` for each server that runs, and once more for one that stops.'

const EVENTS =
  'Events `ready`, `usage` with the usage of a server that runs, and `gap` if the reader was too slow; a WebSocket has a JSON text for each.'

/** A request for a stream, with what responds to it. */
type StreamContext = Omit<StreamRequest, 'endOfCredential'> & { readonly caller: Caller }

/**
 * Serves `/usage` and `/servers/{serverId}/usage`. The services are loaded when they are first asked for.
 *
 * @param changes has the streams, which end as those of changes do
 */
export const usageRoutes = (
  access: AccessControl,
  usage: () => Promise<UsageService>,
  changes: () => Promise<Pick<ChangesService, 'streams'>>,
) => {
  const follow = async (
    { caller, request, set, stream, whileValid }: StreamContext,
    serverId?: string,
  ): Promise<Response> => {
    const [{ live }, { streams }] = await Promise.all([usage(), changes()])
    const endOfCredential = credentialEnd(caller)
    return streams.respond(live.sourceOf(caller, serverId), {
      request,
      set,
      stream,
      whileValid,
      endOfCredential,
    })
  }
  return new Elysia()
    .use(access)
    .get(
      '/servers/:serverId/usage',
      (context): Promise<{ usage: SingleServerUsage }> | Promise<Response> => {
        const { caller, params } = context
        if (!isStream(context.request))
          return usage().then<{ usage: SingleServerUsage }>(async (service) => ({
            usage: await service.get(caller, params.serverId),
          }))
        return usage().then<Response>((service) => {
          service.check(caller, params.serverId)
          return follow(context, params.serverId)
        })
      },
      operation('usage.get', {
        access: 'resource',
        summary: 'Measure what a server uses',
        description:
          'Its processors, memory, storage and processes now, each with its limit, and its open ports. Takes 250 ms if nobody has asked within the last 30 s. A sleeping server uses nothing and is not woken; looking does not keep a server awake. ' +
          LIVE,
        events: EVENTS,
        event: UsageStreamEvent,
        success: { 200: envelope('usage', SingleServerUsage) },
        errors: [400, 401, 404, 502, 503],
      }),
    )
    .get(
      '/usage/servers',
      (context): Promise<{ servers: ServerUsage[] }> | Promise<Response> =>
        isStream(context.request)
          ? follow(context)
          : usage().then<{ servers: ServerUsage[] }>(async (service) => ({
              servers: await service.list(context.caller, context.query.quick === 'true'),
            })),
      operation(
        'usage.servers',
        {
          access: 'resource',
          summary: 'Measure what all servers use',
          description:
            'The same for every server that the key reaches, newest first, without ports. `storage_bytes` is as of the last measurement. ' +
            LIVE,
          events: EVENTS,
          event: UsageStreamEvent,
          success: { 200: listOf('servers', ServerUsage) },
          errors: [400, 401, 503],
        },
        { query: MeasureQuery },
      ),
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
          success: { 200: envelope('usage', AccountUsage) },
          errors: [400, 401, 403],
        },
        { query: UsageQuery },
      ),
    )
}

const isStream = (request: Request): boolean =>
  wantsSocket(request) || wantsEventStream(request.headers.get('accept'))
