import { Elysia } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import type { ProjectsService } from '../projects/service.ts'
import {
  ProjectSecrets,
  ProjectSecretsSet,
  ProjectVariables,
  ServerSecrets,
  ServerSecretsSet,
} from './model.ts'
import type { SecretsService } from './service.ts'

/**
 * Serves `/secrets` and `/projects/{projectId}/secrets`: environment variables, write-only. Projects are loaded on
 * first use.
 */
export const secretsRoutes = (
  access: AccessControl,
  secrets: SecretsService,
  projects: () => Promise<ProjectsService>,
) =>
  new Elysia()
    .use(access)
    .put(
      '/secrets',
      ({ caller, body }) => secrets.setForServer(caller, body),
      operation(
        'secrets.set',
        {
          access: 'resource',
          summary: "Set a server's environment variables",
          description:
            'Sets variables for all commands and apps of the server, and restarts its running apps. The response lists names, never values.',
          success: { 200: ServerSecrets },
          errors: [400, 401, 404],
        },
        { body: ServerSecretsSet },
      ),
    )
    .get(
      '/projects/:projectId/secrets',
      async ({ caller, params }) => (await projects()).listSecrets(caller, params.projectId),
      operation('projectSecrets.list', {
        access: 'resource',
        summary: "List a project's environment variables",
        description:
          'The names of those that are set, and those that the code asks for, with what it says of them. A bring-up in the phase `awaiting_secrets` waits for the `missing` ones. Values are never shown.',
        success: { 200: ProjectVariables },
        errors: [401, 404],
      }),
    )
    .put(
      '/projects/:projectId/secrets',
      async ({ caller, params, body }) => (await projects()).setSecrets(caller, params.projectId, body),
      operation(
        'projectSecrets.set',
        {
          access: 'resource',
          summary: "Set a project's environment variables",
          description:
            "Sets variables for the project's app; they override the server's. A bring-up that waited for them continues; a running app is restarted. The response lists names, never values.",
          success: { 200: ProjectSecrets },
          errors: [400, 401, 404],
        },
        { body: ProjectSecretsSet },
      ),
    )
