import { Elysia, status } from 'elysia'
import { envelope, listOf, SettleQuery } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { readSettled, type SettleSources } from '../../http/wait-ends.ts'
import { LogBody, LogQuery, LogStreamEvent } from '../logs/model.ts'
import { respondWithLog } from '../logs/readable-log.ts'
import { Build, BuildCreate, CreatedBuild } from './model.ts'
import type { BuildsService } from './service.ts'

/** `/builds` and `/servers/{serverId}/builds`. The service is loaded when it is first asked for. */
export const buildsRoutes = (
  access: AccessControl,
  builds: () => Promise<BuildsService>,
  sources: SettleSources,
) =>
  new Elysia()
    .use(access)
    .get(
      '/builds',
      async ({ caller }) => ({ builds: (await builds()).listAll(caller) }),
      operation('builds.listAll', {
        access: 'resource',
        summary: 'List all builds',
        description: 'The builds of all servers that the key reaches, newest first, ended ones included.',
        success: { 200: listOf('builds', Build) },
        errors: [401],
      }),
    )
    .use(serverBuildsRoutes(access, builds, sources))

const serverBuildsRoutes = (
  access: AccessControl,
  builds: () => Promise<BuildsService>,
  sources: SettleSources,
) =>
  new Elysia({ prefix: '/servers/:serverId/builds' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({ builds: (await builds()).list(caller, params.serverId) }),
      operation('builds.list', {
        access: 'resource',
        summary: "List a server's builds",
        description: 'Newest first, ended builds included.',
        success: { 200: listOf('builds', Build) },
        errors: [401, 404],
      }),
    )
    .post(
      '',
      async ({ caller, params, body }) =>
        status(201, await (await builds()).create(caller, params.serverId, body.goal)),
      operation(
        'builds.create',
        {
          access: 'resource',
          summary: 'Build an app for a goal',
          description:
            'Plans, scaffolds, implements, installs, builds and publishes, in this order; `steps` tell how far it is. Builds of a server run one at a time, first come first served; a server that sleeps is woken.',
          success: { 201: CreatedBuild },
          errors: [400, 401, 402, 404, 502],
        },
        { body: BuildCreate },
      ),
    )
    .get(
      '/:buildId',
      async ({ caller, params, query, request, whileValid }) => {
        const service = await builds()
        const read = () => service.get(caller, params.serverId, params.buildId)
        const isSettled = ({ status }: Build) => status === 'completed'
        return { build: await readSettled(read, isSettled, sources, { request, query, whileValid }) }
      },
      operation(
        'builds.get',
        {
          access: 'resource',
          summary: 'Get a build',
          description:
            'Its status, how far each phase is, and its URL once it is published. With `wait_ms` the response waits until the build is completed.',
          success: { 200: envelope('build', Build) },
          errors: [400, 401, 404],
        },
        { query: SettleQuery },
      ),
    )
    .get(
      '/:buildId/logs',
      ({ caller, params, query, request, stream }) =>
        respondWithLog(
          { query, request, stream },
          builds().then((service) => service.openLog(caller, params.serverId, params.buildId)),
        ),
      operation(
        'builds.logs',
        {
          access: 'resource',
          summary: "Read a build's log",
          description:
            'What its phases did and printed, the newest last, and why it failed where it did; values of secrets are masked. The logs of the last 20 builds of a server are kept.',
          events:
            'Event `line` with a line of the log, for each that is there and for each that comes; `dropped` with the number of `lines` that a slow reader has missed. The stream ends with the build.',
          event: LogStreamEvent,
          resumable: true,
          success: { 200: LogBody },
          errors: [400, 401, 404],
        },
        { query: LogQuery },
      ),
    )
