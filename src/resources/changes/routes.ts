import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { credentialEnd } from '../../http/web-socket.ts'
import { Change } from './model.ts'
import type { ChangesService } from './service.ts'

/** Serves `/changes`: a stream of everything that changes. The service is loaded when it is first asked for. */
export const changesRoutes = (access: AccessControl, changes: () => Promise<ChangesService>) =>
  new Elysia({ prefix: '/changes' }).use(access).get(
    '',
    async ({ caller, request, set, stream, whileValid }) => {
      const service = await changes()
      const endOfCredential = credentialEnd(caller)
      const parts = { request, set, stream, whileValid, endOfCredential }
      return service.streams.respond(service.sourceOf(caller), parts)
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
