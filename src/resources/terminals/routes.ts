import { Elysia, status, t } from 'elysia'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { identifyingHeaders } from '../../http/request-entry.ts'
import { AttachQuery, ScreenQuery, Terminal, TerminalCreate, TerminalInput, TerminalScreen } from './model.ts'
import type { TerminalsService } from './service.ts'

/** Serves `/servers/{serverId}/terminals`. The service is loaded when it is first asked for. */
export const terminalsRoutes = (access: AccessControl, terminals: () => Promise<TerminalsService>) =>
  new Elysia({ prefix: '/servers/:serverId/terminals' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({ terminals: (await terminals()).list(caller, params.serverId) }),
      operation('terminals.list', {
        access: 'resource',
        summary: "List a server's terminals",
        description: 'Newest first. One whose program has ended is listed for another hour.',
        success: { 200: listOf('terminals', Terminal) },
        errors: [401, 404],
      }),
    )
    .post(
      '',
      async ({ caller, params, body }) =>
        status(201, { terminal: await (await terminals()).create(caller, params.serverId, body) }),
      operation(
        'terminals.create',
        {
          access: 'resource',
          summary: 'Open a terminal',
          description:
            'Starts a command, or a login shell, on a terminal of its own. It runs on without viewers until its program ends, it is deleted, its server stops, or it is neither watched nor prints for as long as `--terminal-idle` says. A sleeping server is woken.',
          success: { 201: envelope('terminal', Terminal) },
          errors: [400, 401, 402, 403, 404, 502],
        },
        { body: TerminalCreate },
      ),
    )
    .get(
      '/:terminalId',
      async ({ caller, params }) => ({
        terminal: (await terminals()).get(caller, params.serverId, params.terminalId),
      }),
      operation('terminals.get', {
        access: 'resource',
        summary: 'Get a terminal',
        description: 'Its size, its viewers, and how its program has ended if it has.',
        success: { 200: envelope('terminal', Terminal) },
        errors: [401, 404],
      }),
    )
    .get(
      '/:terminalId/attach',
      async ({ caller, params, query, request, set, whileValid }) => {
        const { serverId, terminalId } = params
        const headers = identifyingHeaders(set)
        ;(await terminals()).attach(caller, serverId, terminalId, { request, query, headers, whileValid })
        return new Response(null, { status: 101 })
      },
      operation(
        'terminals.attach',
        {
          access: 'resource',
          summary: 'Attach to a terminal',
          description:
            'A WebSocket. Binary frames are bytes of the terminal, in both directions; the first one to the viewer is the screen as it is, with its scrollback. Text frames are JSON: the viewer sends `{"resize": [columns, rows]}`, and is sent `{"exit": n}` when the program has ended. The smallest viewer decides the size. A browser may attach with its session, from a page of this instance.',
          success: { 101: t.Void() },
          errors: [400, 401, 403, 404, 426],
        },
        { query: AttachQuery },
      ),
    )
    .get(
      '/:terminalId/screen',
      async ({ caller, params, query, request: { signal }, whileValid }) => ({
        screen: await (await terminals()).screen(caller, params.serverId, params.terminalId, query, {
          signal,
          whileValid,
        }),
      }),
      operation(
        'terminals.screen',
        {
          access: 'resource',
          summary: 'Read the screen of a terminal',
          description:
            'Returns what it shows as text, at once or when what the query asks for has come: text that matches `until`, no output for `quiet_ms`, the end of the program, or the end of `timeout_ms`, whichever is first. `until` is looked for on the whole screen and in all that is printed later, even if it has scrolled away.',
          success: { 200: envelope('screen', TerminalScreen) },
          errors: [400, 401, 403, 404],
        },
        { query: ScreenQuery },
      ),
    )
    .post(
      '/:terminalId/input',
      async ({ caller, params, body, request: { signal }, whileValid }) => ({
        screen: await (await terminals()).type(caller, params.serverId, params.terminalId, body, {
          signal,
          whileValid,
        }),
      }),
      operation(
        'terminals.type',
        {
          access: 'resource',
          summary: 'Type on a terminal',
          description:
            'Types text and presses keys, and returns the screen when what the body asks for has come, as with `terminals.screen`. `until` is looked for only in what changes after the keys; without `until` and `quiet_ms` it waits until nothing was printed for 250 ms.',
          success: { 200: envelope('screen', TerminalScreen) },
          errors: [400, 401, 403, 404],
        },
        { body: TerminalInput },
      ),
    )
    .delete(
      '/:terminalId',
      async ({ caller, params }) => {
        await (await terminals()).delete(caller, params.serverId, params.terminalId)
        return { id: params.terminalId, deleted: true as const }
      },
      operation('terminals.delete', {
        access: 'resource',
        summary: 'Hang a terminal up',
        description:
          'Sends SIGHUP to everything on it, ends what is left as a cancelled command is ended, and closes the sockets of its viewers.',
        success: { 200: DeleteResult },
        errors: [401, 404],
      }),
    )
