import { Elysia, status, t } from 'elysia'
import { DeleteResult, listOf, SettleQuery } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { readSettled, type SettleSources } from '../../http/wait-ends.ts'
import { AppLogQuery, LogBody, LogStreamEvent } from '../logs/model.ts'
import { respondWithLog } from '../logs/readable-log.ts'
import {
  CleanupResult,
  Detection,
  Project,
  ProjectCreate,
  ProjectDetect,
  ProjectInit,
  ProjectPush,
  ProjectUpdate,
  PushResult,
} from './model.ts'
import type { ProjectsService } from './service.ts'

/** The phases in which a bring-up goes no further by itself. */
const SETTLED: readonly Project['init_phase'][] = ['ready', 'failed', 'awaiting_secrets', null]

/** `/servers/{serverId}/projects` and `/projects`. The service is loaded when it is first asked for. */
export const projectsRoutes = (
  access: AccessControl,
  projects: () => Promise<ProjectsService>,
  sources: SettleSources,
) =>
  new Elysia()
    .use(access)
    .get(
      '/servers/:serverId/projects',
      async ({ caller, params }) => ({ projects: (await projects()).list(caller, params.serverId) }),
      operation('projects.list', {
        access: 'resource',
        summary: "List a server's projects",
        description: 'The projects of one server that the key reaches, newest first.',
        success: { 200: listOf('projects', Project) },
        errors: [401, 404],
      }),
    )
    .post(
      '/servers/:serverId/projects',
      async ({ caller, params, body, upload }) =>
        status(201, await (await projects()).create(caller, params.serverId, body ?? {}, upload)),
      operation(
        'projects.create',
        {
          access: 'resource',
          form: { file: 'archive', json: ['source', 'env'] },
          summary: 'Create a project',
          description:
            'Makes a project from nothing, a template, a git repository or an archive. If the source has code, berth begins to install, build and start it: `init_run_id` names this bring-up, and `init_phase` says how far it is.',
          success: { 201: Project },
          errors: [400, 401, 402, 403, 404],
        },
        { body: t.Optional(ProjectCreate) },
      ),
    )
    .post(
      '/servers/:serverId/projects/detect',
      async ({ caller, params, body, upload, request }) =>
        (await (await projects()).detection()).detect(
          caller,
          params.serverId,
          body ?? {},
          upload,
          request.signal,
        ),
      operation(
        'projects.detect',
        {
          access: 'resource',
          form: { file: 'archive', json: ['source'] },
          summary: 'Detect the app of a source',
          description:
            'Shows how berth would install, build and start the app of a source on this server, and why. Runs nothing of it and keeps nothing. Two run at a time, for at most a minute each.',
          success: { 200: Detection },
          errors: [400, 401, 402, 403, 404],
        },
        { body: t.Optional(ProjectDetect) },
      ),
    )
    .get(
      '/projects',
      async ({ caller }) => ({ projects: (await projects()).listAll(caller) }),
      operation('projects.listAll', {
        access: 'resource',
        summary: 'List all projects',
        description: 'The projects of all servers that the key reaches, newest first.',
        success: { 200: listOf('projects', Project) },
        errors: [401],
      }),
    )
    .get(
      '/projects/:projectId',
      async ({ caller, params, query, request, whileValid }) => {
        const service = await projects()
        const isSettled = (project: Project) => SETTLED.includes(project.init_phase)
        return readSettled(() => service.get(caller, params.projectId), isSettled, sources, {
          request,
          query,
          whileValid,
        })
      },
      operation(
        'projects.get',
        {
          access: 'resource',
          summary: 'Get a project',
          description:
            'Its URL, the state of its app and how far its bring-up is. With `wait_ms` the response waits until the bring-up is ready, has failed, or waits for variables.',
          success: { 200: Project },
          errors: [400, 401, 404],
        },
        { query: SettleQuery },
      ),
    )
    .patch(
      '/projects/:projectId',
      async ({ caller, params, body }) => (await projects()).update(caller, params.projectId, body),
      operation(
        'projects.update',
        {
          access: 'resource',
          summary: 'Change a project',
          description:
            'Changes the fields that are given. The slug never changes; `url` is null while the project is private.',
          success: { 200: Project },
          errors: [400, 401, 404],
        },
        { body: ProjectUpdate },
      ),
    )
    .delete(
      '/projects/:projectId',
      async ({ caller, params }) => {
        await (await projects()).delete(caller, params.projectId)
        return { id: params.projectId, deleted: true as const }
      },
      operation('projects.delete', {
        access: 'resource',
        summary: 'Delete a project',
        description: 'Ends its app and removes its files. Nothing brings them back.',
        success: { 200: DeleteResult },
        errors: [401, 404],
      }),
    )
    .post(
      '/projects/:projectId/cleanup',
      async ({ caller, params }) => {
        await (await projects()).cleanup(caller, params.projectId)
        return { id: params.projectId, cleaned: true as const }
      },
      operation('projects.cleanup', {
        access: 'resource',
        summary: 'Clean up an ephemeral project',
        description:
          'Removes the project and its files. A project whose lifecycle is `persistent` is refused.',
        success: { 200: CleanupResult },
        errors: [400, 401, 404],
      }),
    )
    .post(
      '/projects/:projectId/init',
      async ({ caller, params, body }) =>
        status(202, await (await projects()).init(caller, params.projectId, body ?? {})),
      operation(
        'projects.init',
        {
          access: 'resource',
          summary: 'Continue or repeat a bring-up',
          description:
            'Continues a bring-up that waits for variables; `proceed` continues without them. If none is under way, begins a new one with the code that is there.',
          success: { 202: Project },
          errors: [400, 401, 402, 404],
        },
        { body: t.Optional(ProjectInit) },
      ),
    )
    .post(
      '/projects/:projectId/push',
      async ({ caller, params, body, upload }) =>
        (await projects()).push(caller, params.projectId, body, upload),
      operation(
        'projects.push',
        {
          access: 'resource',
          form: { file: 'archive', json: ['files', 'links', 'pieces'] },
          summary: "Replace a project's code",
          description:
            'Makes the code what `files` and `links` describe. First send these alone: `missing` names what the server lacks. Then send the same as a form, with an archive of those, or several times with a part of them: parts are kept for 10 minutes, and nothing changes before the last. A file that is too large for a request is sent in `pieces`, from its beginning on; all together may have 1 GiB. Removes what came from outside earlier and is not described; what the app has made stays. Then the app is installed, built and started again as far as that is necessary.',
          success: { 200: PushResult },
          errors: [400, 401, 402, 404],
        },
        { body: ProjectPush },
      ),
    )
    .post(
      '/projects/:projectId/restart',
      async ({ caller, params }) => status(202, await (await projects()).restart(caller, params.projectId)),
      operation('projects.restart', {
        access: 'resource',
        summary: "Restart a project's app",
        description:
          'Starts the app again as it was built, without a gap: the old one answers until the new one does. A bring-up that is under way goes on instead. A sleeping server is woken.',
        success: { 202: Project },
        errors: [400, 401, 402, 404],
      }),
    )
    .get(
      '/projects/:projectId/logs',
      ({ caller, params, query, request, stream }) =>
        respondWithLog(
          { query, request, stream },
          projects().then((service) => service.openLog(caller, params.projectId)),
        ),
      operation(
        'projects.logs',
        {
          access: 'resource',
          summary: "Read a project's log",
          description:
            'What its bring-ups and its app printed, the newest last; values of secrets are masked.',
          events:
            'Event `line` with a line of the log, for each that is there and for each that comes; `dropped` with the number of `lines` that a slow reader has missed.',
          event: LogStreamEvent,
          resumable: true,
          success: { 200: LogBody },
          errors: [400, 401, 404],
        },
        { query: AppLogQuery },
      ),
    )
