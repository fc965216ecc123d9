import { Elysia } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { ServerProcess, SignalQuery, SignalResult } from './model.ts'
import type { ProcessesService } from './service.ts'

/** Serves `/servers/{serverId}/processes`. The service is loaded when it is first asked for. */
export const processesRoutes = (access: AccessControl, processes: () => Promise<ProcessesService>) =>
  new Elysia({ prefix: '/servers/:serverId/processes' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({
        processes: await (await processes()).list(caller, params.serverId),
      }),
      operation('processes.list', {
        access: 'resource',
        summary: "List a server's processes",
        description:
          'Everything that commands, terminals, tasks, builds and apps have started and that runs, as programs of the server see it. A sleeping server has none and is not woken; looking does not keep a server awake.',
        success: { 200: listOf('processes', ServerProcess) },
        errors: [401, 404, 502],
      }),
    )
    .delete(
      '/:pid',
      async ({ caller, params, query }) =>
        (await processes()).signal(caller, params.serverId, params.pid, query.signal ?? 'TERM'),
      operation(
        'processes.delete',
        {
          access: 'resource',
          summary: 'Send a signal to a process',
          description:
            'Sends TERM, or the signal of the query, to one process of the list, and waits up to a second for its end. `ended` tells whether it has ended; a program may ignore every signal but KILL.',
          success: { 200: SignalResult },
          errors: [400, 401, 404, 502],
        },
        { query: SignalQuery },
      ),
    )
