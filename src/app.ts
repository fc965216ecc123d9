import { Elysia } from 'elysia'
import { accessControl, Callers, Uploads } from './http/access.ts'
import { BODY_LIMIT } from './http/body.ts'
import { docsRoutes } from './http/docs/routes.ts'
import { requestEntry } from './http/entry.ts'
import { errorAnswers, methodsByRoutes } from './http/errors.ts'
import type { HostOptions } from './http/host.ts'
import { idempotencyKeys } from './http/idempotency.ts'
import { openApiRoutes } from './http/openapi/routes.ts'
import { deploymentsRoutes } from './resources/deployments/routes.ts'
import { execRoutes } from './resources/exec/routes.ts'
import { filesRoutes } from './resources/files/routes.ts'
import { keysRoutes } from './resources/keys/routes.ts'
import { projectsRoutes } from './resources/projects/routes.ts'
import { secretsRoutes } from './resources/secrets/routes.ts'
import { serversRoutes } from './resources/servers/routes.ts'
import { tasksRoutes } from './resources/tasks/routes.ts'
import { templatesRoutes } from './resources/templates/routes.ts'
import { webhooksRoutes } from './resources/webhooks/routes.ts'
import type { Services } from './services.ts'

/**
 * The whole API as one Elysia. Order matters: failures are caught before anything can fail, and a
 * request's id and Host header come before its route.
 */
export function createApp(services: Services, host: HostOptions) {
  const callers = new Callers((key) => services.keys.authenticate(key))
  const uploads = new Uploads()
  const access = accessControl(callers, uploads, BODY_LIMIT)
  // `normalize: false` refuses fields that a shape does not know, in requests and in our own answers.
  const root = new Elysia({ name: 'berth', normalize: false })
  const methodsOf = methodsByRoutes(() => root.routes)
  return root
    .use(errorAnswers(services.logger, methodsOf, () => 'GET /openapi.json lists all paths.'))
    .use(requestEntry(services.ids, host))
    .use(idempotencyKeys(services.queries, services.cipher, services.clock, callers, uploads))
    .use(openApiRoutes(() => root))
    .use(docsRoutes())
    .use(serversRoutes(access, services.servers))
    .use(execRoutes(access, services.exec))
    .use(filesRoutes(access, services.files))
    .use(deploymentsRoutes(access, services.hosting.deployments))
    .use(tasksRoutes(access, services.tasks.service))
    .use(projectsRoutes(access, services.hosting.projects))
    .use(secretsRoutes(access, services.secrets, services.hosting.projects))
    .use(keysRoutes(access, services.keys))
    .use(templatesRoutes(access, services.templates))
    .use(webhooksRoutes(access, services.webhooks))
}

/** The API. */
export type App = ReturnType<typeof createApp>
