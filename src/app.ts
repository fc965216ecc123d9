import { Elysia } from 'elysia'
import { type ControlParts, controlRoutes } from './control/routes.ts'
import { type Authenticate, accessControl, Callers } from './http/access.ts'
import { BODY_LIMIT } from './http/body.ts'
import { docsRoutes } from './http/docs/routes.ts'
import { requestEntry } from './http/entry.ts'
import { errorAnswers, methodsByRoutes } from './http/errors.ts'
import type { HostOptions } from './http/host.ts'
import { idempotencyKeys } from './http/idempotency.ts'
import { openApiRoutes } from './http/openapi/routes.ts'
import { execRoutes } from './resources/exec/routes.ts'
import type { ExecService } from './resources/exec/service.ts'
import { filesRoutes } from './resources/files/routes.ts'
import type { FilesService } from './resources/files/service.ts'
import { keysRoutes } from './resources/keys/routes.ts'
import type { KeysService } from './resources/keys/service.ts'
import { serversRoutes } from './resources/servers/routes.ts'
import type { ServersService } from './resources/servers/service.ts'
import { webhooksRoutes } from './resources/webhooks/routes.ts'
import type { WebhooksService } from './resources/webhooks/service.ts'
import type { Clock } from './runtime/clock.ts'
import type { Ids } from './runtime/ids.ts'
import type { Logger } from './runtime/logger.ts'
import type { Cipher } from './storage/cipher.ts'
import type { Queries } from './storage/database.ts'

/** What the HTTP side is made of. */
export interface AppParts {
  queries: Queries
  cipher: Cipher
  clock: Clock
  ids: Ids
  logger: Logger
  host: HostOptions
  authenticate: Authenticate
  control: ControlParts
  servers: ServersService
  exec: ExecService
  files: FilesService
  keys: KeysService
  webhooks: () => Promise<WebhooksService>
}

/**
 * The whole API as one Elysia. Order matters: failures are caught before anything can fail, and a
 * request's id and Host header come before its route.
 */
export function createApp(parts: AppParts) {
  const callers = new Callers(parts.authenticate)
  const access = accessControl(callers, BODY_LIMIT)
  // `normalize: false` refuses fields that a shape does not know, in requests and in our own answers.
  const root = new Elysia({ name: 'berth', normalize: false })
  const methodsOf = methodsByRoutes(() => root.routes)
  return root
    .use(errorAnswers(parts.logger, methodsOf))
    .use(requestEntry(parts.ids, parts.host))
    .use(idempotencyKeys(parts.queries, parts.cipher, parts.clock, callers))
    .use(openApiRoutes(() => root))
    .use(docsRoutes())
    .use(controlRoutes(parts.control))
    .use(serversRoutes(access, parts.servers))
    .use(execRoutes(access, parts.exec))
    .use(filesRoutes(access, parts.files))
    .use(keysRoutes(access, parts.keys))
    .use(webhooksRoutes(access, parts.webhooks))
}

/** The API. */
export type App = ReturnType<typeof createApp>
