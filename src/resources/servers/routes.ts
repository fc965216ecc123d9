import { Elysia, status, t } from 'elysia'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import {
  CreatedServer,
  Server,
  ServerActionRequest,
  ServerActionResult,
  ServerCompute,
  ServerCreate,
  ServerSystem,
  ServerUpdate,
} from './model.ts'
import type { ServersService } from './service.ts'

/** Serves `/servers`: provision, show, change, control and delete servers. */
export const serversRoutes = (access: AccessControl, servers: ServersService) =>
  new Elysia({ prefix: '/servers' })
    .use(access)
    .get(
      '',
      ({ caller }): { servers: Server[] } | Promise<{ servers: Server[] }> => {
        const listed = servers.listMeasured(caller)
        return Array.isArray(listed) ? { servers: listed } : listed.then((all) => ({ servers: all }))
      },
      operation('servers.list', {
        access: 'resource',
        summary: 'List servers',
        description:
          'All servers that the key reaches, newest first, each with its status and what it has used.',
        success: { 200: listOf('servers', Server) },
        errors: [401],
      }),
    )
    .post(
      '',
      async ({ caller, body, query }) => status(201, await servers.create(caller, body ?? {}, query)),
      operation(
        'servers.create',
        {
          access: 'account',
          summary: 'Provision a server',
          description:
            'The server runs when the response comes. All fields are optional: without them it is small and in us-east.',
          success: { 201: CreatedServer },
          errors: [400, 401, 403, 502],
        },
        { body: t.Optional(ServerCreate), query: ServerSystem },
      ),
    )
    .get(
      '/:serverId',
      async ({ caller, params }) => ({ server: await servers.get(caller, params.serverId) }),
      operation('servers.get', {
        access: 'resource',
        summary: 'Get a server',
        description: 'Its status, its published URL and what it has used.',
        success: { 200: envelope('server', Server) },
        errors: [401, 404],
      }),
    )
    .get(
      '/:serverId/compute',
      ({ caller, params }) => servers.compute(caller, params.serverId),
      operation('servers.compute', {
        access: 'resource',
        summary: 'Get where a server runs',
        description: 'From which image, on which machine, and whether berth reaches it.',
        success: { 200: ServerCompute },
        errors: [401, 404],
      }),
    )
    .patch(
      '/:serverId',
      async ({ caller, params, body }) => ({ server: await servers.update(caller, params.serverId, body) }),
      operation(
        'servers.update',
        {
          access: 'resource',
          summary: 'Change a server',
          description: 'Changes its label or its region. The tier of a server cannot be changed.',
          success: { 200: envelope('server', Server) },
          errors: [400, 401, 404],
        },
        { body: ServerUpdate },
      ),
    )
    .delete(
      '/:serverId',
      async ({ caller, params }) => {
        await servers.delete(caller, params.serverId)
        return { id: params.serverId, deleted: true as const }
      },
      operation('servers.delete', {
        access: 'resource',
        summary: 'Remove a server and everything in it',
        description:
          'Ends all of its processes and removes its files, projects, deployments, tasks and builds. Nothing brings them back.',
        success: { 200: DeleteResult },
        errors: [401, 404],
      }),
    )
    .post(
      '/:serverId/actions',
      async ({ caller, params, body }) => ({
        id: params.serverId,
        status: await servers.act(caller, params.serverId, body.action),
      }),
      operation(
        'servers.act',
        {
          access: 'resource',
          summary: 'Start, stop or restart a server',
          description:
            'Starting a running server changes nothing, and neither does stopping a sleeping one. Stopping ends every process, fails running tasks and keeps the files.',
          success: { 200: ServerActionResult },
          errors: [400, 401, 402, 404, 502],
        },
        { body: ServerActionRequest },
      ),
    )
