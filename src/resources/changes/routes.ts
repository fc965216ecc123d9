import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { BerthError } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { wantsEventStream } from '../../http/sse.ts'
import { wantsSocket } from '../../http/web-socket.ts'
import { Change } from './model.ts'
import type { ChangesService } from './service.ts'

/** Serves `/changes`: a stream of everything that changes. The service is loaded when it is first asked for. */
export const changesRoutes = (access: AccessControl, changes: () => Promise<ChangesService>) =>
  new Elysia({ prefix: '/changes' }).use(access).get(
    '',
    async ({ caller, request, set, stream, whileValid }) => {
      const service = await changes()
      if (wantsSocket(request)) {
        const headers = { 'x-request-id': String(set.headers['x-request-id']) }
        service.attach(caller, { request, headers, whileValid })
        return new Response(null, { status: 101 })
      }
      if (!wantsEventStream(request.headers.get('accept'))) {
        throw new BerthError(
          'upgrade_required',
          'Changes are streamed: send a handshake of a WebSocket, or "Accept: text/event-stream".',
        )
      }
      return stream((send, gone) => service.follow(caller, (message) => send(message.type, message), gone))
    },
    operation('changes.stream', {
      access: 'resource',
      summary: 'Follow everything that changes',
      description:
        'A WebSocket with a JSON text for each message, or an event stream with the same JSON, whose events have the name of its `type`. The first message is `{"type": "ready"}`. Then each object that the credential reaches is sent when it is added, has changed or was removed: `{"type": NOUN, "id": ID, "value": OBJECT}`, the object as its GET returns it, null if it is gone; `server_id` names the server that it lies on. Changes of one object within 20 ms are one message. Nothing is replayed: load what you need after `ready`, and again after `{"type": "gap"}`, which a reader gets that was too slow.',
      gives: 'text/event-stream',
      success: { 101: t.Void(), 200: Change },
      errors: [400, 401, 403, 426, 503],
    }),
  )
