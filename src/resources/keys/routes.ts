import { Elysia, status } from 'elysia'
import { DeleteResult, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { ApiKey, ApiKeyCreate, ApiKeyScope, ApiKeyScopeUpdate, CreatedApiKey } from './model.ts'
import type { KeysService } from './service.ts'

/** Serves `/keys`: list, create, limit and delete API keys. */
export const keysRoutes = (access: AccessControl, keys: KeysService) =>
  new Elysia({ prefix: '/keys' })
    .use(access)
    .get(
      '',
      ({ caller }) => ({ keys: keys.list(caller) }),
      operation('keys.list', {
        access: 'account',
        summary: 'List API keys',
        description: 'Newest first, each with its scope. The keys themselves are masked.',
        success: { 200: listOf('keys', ApiKey) },
        errors: [401, 403],
      }),
    )
    .post(
      '',
      ({ caller, body }) => status(201, keys.create(caller, body)),
      operation(
        'keys.create',
        {
          access: 'account',
          summary: 'Create an API key',
          description:
            'Without a scope the key reaches the whole account. Only this response contains the key itself: keep it.',
          secret: true,
          success: { 201: CreatedApiKey },
          errors: [400, 401, 403],
        },
        { body: ApiKeyCreate },
      ),
    )
    .patch(
      '/:keyId',
      ({ caller, params, body }) => keys.update(caller, params.keyId, body),
      operation(
        'keys.update',
        {
          access: 'account',
          summary: 'Replace the scope of an API key',
          description:
            'A list that is omitted or empty means everything. Limiting the last account-wide key is refused.',
          success: { 200: ApiKeyScope },
          errors: [400, 401, 403, 404],
        },
        { body: ApiKeyScopeUpdate },
      ),
    )
    .delete(
      '/:keyId',
      ({ caller, params }) => {
        keys.delete(caller, params.keyId)
        return { id: params.keyId, deleted: true as const }
      },
      operation('keys.delete', {
        access: 'account',
        summary: 'Delete an API key',
        description:
          'Requests with the key get 401 from then on. Deleting the last account-wide key is refused.',
        success: { 200: DeleteResult },
        errors: [400, 401, 403, 404],
      }),
    )
