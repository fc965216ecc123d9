import { Elysia, status, t } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { AppLogQuery, LogBody, LogStreamEvent } from '../logs/model.ts'
import { respondWithLog } from '../logs/readable-log.ts'
import {
  Deployment,
  DeploymentCreate,
  DeploymentPush,
  DeploymentPushResult,
  PublishedDeployment,
  RemovedDeployment,
} from './model.ts'
import type { DeploymentsService } from './service.ts'

/** Serves `/servers/{serverId}/deployments`. The service is loaded on first use. */
export const deploymentsRoutes = (access: AccessControl, deployments: () => Promise<DeploymentsService>) =>
  new Elysia({ prefix: '/servers/:serverId/deployments' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({ deployments: (await deployments()).list(caller, params.serverId) }),
      operation('deployments.list', {
        access: 'resource',
        summary: 'List what a server publishes',
        description: 'Returns at most one deployment, with its URL and whether it is live.',
        success: { 200: listOf('deployments', Deployment) },
        errors: [401, 404],
      }),
    )
    .post(
      '',
      async ({ caller, params, body }) =>
        status(201, await (await deployments()).publish(caller, params.serverId, body ?? {})),
      operation(
        'deployments.create',
        {
          access: 'resource',
          summary: "Publish a server's workspace",
          description:
            'Starts the app of the workspace, or serves its files if there is no app. `directory` publishes the app of that directory. Publishing again keeps the URL, and no request is refused meanwhile. A sleeping server is woken.',
          success: { 201: PublishedDeployment },
          errors: [400, 401, 402, 404, 502],
        },
        { body: t.Optional(DeploymentCreate) },
      ),
    )
    .post(
      '/push',
      async ({ caller, params, body, upload }) =>
        (await deployments()).push(caller, params.serverId, body, upload),
      operation(
        'deployments.push',
        {
          access: 'resource',
          form: { file: 'archive', json: ['files', 'links', 'pieces', 'removed', 'clean'] },
          summary: 'Replace files of a workspace and publish it',
          description:
            'Makes the files of the workspace what `files` and `links` describe, and publishes it. Send these alone first, and then with archives of what is `missing`, as for a push of a project: nothing changes before the last part. If the new version does not come up, the files of the version before are put back, and it goes on without a restart, whether or not the client still waits. A push that is published still is withdrawn by the next one.',
          success: { 200: DeploymentPushResult },
          errors: [400, 401, 402, 404, 502],
        },
        { body: DeploymentPush },
      ),
    )
    .delete(
      '',
      async ({ caller, params }) => (await deployments()).delete(caller, params.serverId),
      operation('deployments.delete', {
        access: 'resource',
        summary: 'Remove what a server publishes',
        description:
          'Ends the app or the files at the URL, with the log. The workspace stays as it is; the next publication gets a new URL.',
        success: { 200: RemovedDeployment },
        errors: [401, 404],
      }),
    )
    .get(
      '/logs',
      ({ caller, params, query, request, stream }) =>
        respondWithLog(
          { query, request, stream },
          deployments().then((service) => service.openLog(caller, params.serverId)),
        ),
      operation(
        'deployments.logs',
        {
          access: 'resource',
          summary: 'Read the log of what a server publishes',
          description:
            'What the install, the build and the app of its workspace printed, the newest last, also of one that never came up; values of secrets are masked.',
          events:
            'Event `line` with a line of the log, for each that is there and for each that comes; `dropped` with the number of `lines` that a slow reader has missed. If the server publishes nothing, the stream ends.',
          event: LogStreamEvent,
          resumable: true,
          success: { 200: LogBody },
          errors: [400, 401, 404],
        },
        { query: AppLogQuery },
      ),
    )
