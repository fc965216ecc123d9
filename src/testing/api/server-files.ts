import { Elysia, status, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { integer } from '../../contract/schema.ts'
import { readWhole } from '../../http/body.ts'
import { CreatedServer, ServerCreate, ServerSystem } from '../../resources/servers/model.ts'
import { ServerTransfers } from '../../resources/servers/transfers.ts'
import { checkAccount } from './account.ts'
import type { ControlParts } from './parts.ts'

/** The media type of archives of servers. */
export const ARCHIVE_TYPE = 'application/x-tar'

const ImportQuery = t.Object(
  {
    account_id: t.Optional(t.String({ description: 'Whose it is; the first account where left out.' })),
    ...ServerCreate.properties,
    ...ServerSystem.properties,
  },
  { additionalProperties: false },
)

const ImportedServer = t.Object(
  {
    ...CreatedServer.properties,
    files: integer({ minimum: 0, description: 'Files and links.' }),
    bytes: integer({ minimum: 0, description: 'Bytes of their content.' }),
    archived: t.Object(
      {
        id: t.String(),
        exported_at: t.String({ format: 'date-time' }),
        image: t.Nullable(t.String()),
        root: t.Boolean(),
      },
      { $id: 'ArchivedServer', description: 'The server that was exported.' },
    ),
  },
  { $id: 'ImportedServer' },
)

const ARCHIVE = { type: ARCHIVE_TYPE, description: 'The archive.' }

/** Serves `/_berth/servers`: carries single servers out of the instance and into it. */
export const serverFilesRoutes = ({ access, instance, services, stopping }: ControlParts) => {
  const { keys, queries } = services
  const transfers = new ServerTransfers({ ...services, version: instance.version })
  return new Elysia({ prefix: '/_berth/servers' })
    .use(access)
    .get(
      '/:serverId/export',
      async ({ params: { serverId }, streamBytes }) => {
        await transfers.check(serverId)
        return streamBytes(ARCHIVE_TYPE, (send, gone) =>
          transfers.export(serverId, send, AbortSignal.any([gone, stopping])),
        )
      },
      operation('control.servers.export', {
        access: 'admin',
        summary: 'Export a server',
        description:
          'Sends a tar with what the server is, its files, and a manifest with their hashes. A server that runs stands still meanwhile.',
        gives: ARCHIVE_TYPE,
        success: { 200: t.Void() },
        errors: [404, 502],
      }),
    )
    .post(
      '/import',
      async ({ query: { account_id, ...chosen }, request }) => {
        checkAccount(queries, account_id, '"account_id" in the query')
        const bytes = readWhole(request.body ?? new Blob().stream())
        return status(201, await transfers.import(account_id ?? keys.first.accountId(), bytes, chosen))
      },
      operation(
        'control.servers.import',
        {
          access: 'admin',
          summary: 'Make a server from an export',
          description:
            'It gets a new id, and the name, the tier and the region of the exported server where the query says no other. It runs when the response comes. An archive that is damaged leaves nothing.',
          takes: ARCHIVE,
          success: { 201: ImportedServer },
          errors: [400, 403, 502],
        },
        { query: ImportQuery },
      ),
    )
}
