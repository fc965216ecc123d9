import { Elysia, status, t } from 'elysia'
import { ComputeKind } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { flagSchema, integer } from '../../contract/schema.ts'
import { readWhole } from '../../http/body.ts'
import { CreatedServer, ServerCreate, ServerSystem } from '../../resources/servers/model.ts'
import { ServerTransfers } from '../../resources/servers/transfers.ts'
import { checkAccount } from './account.ts'
import type { ControlParts } from './parts.ts'

/** The media type of archives of servers: generators of clients pass over others. */
export const ARCHIVE_TYPE = 'application/octet-stream'

const ImportQuery = t.Object(
  {
    account_id: t.Optional(t.String({ description: 'Whose it is; the first account where left out.' })),
    ...ServerCreate.properties,
    ...ServerSystem.properties,
  },
  { additionalProperties: false },
)

const RecoverQuery = t.Object(
  {
    gone: t.Optional(
      flagSchema(
        'Whether the engine or the cluster with its files is gone for good. Where it cannot be reached, only you know that.',
      ),
    ),
  },
  { additionalProperties: false },
)

const SIZE = {
  files: integer({ minimum: 0, description: 'Files and links.' }),
  bytes: integer({ minimum: 0, description: 'Bytes of their content.' }),
}

const ImportedServer = t.Object(
  {
    ...CreatedServer.properties,
    ...SIZE,
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

const ServerMove = t.Object(
  {
    to: t.String({
      minLength: 1,
      maxLength: 1_000,
      description: '`local`, `docker`, `kubernetes`, or the address of a Docker engine.',
    }),
  },
  { $id: 'ServerMove', additionalProperties: false },
)

const MovedServer = t.Object(
  {
    id: t.String(),
    from: ComputeKind,
    to: ComputeKind,
    ...SIZE,
    removed: t.Boolean({
      description: 'Whether the files are gone from where they were; if not yet, a later start removes them.',
    }),
  },
  { $id: 'MovedServer' },
)

const LeftBehind = t.Object(
  {
    name: t.String(),
    remedy: t.String({ description: 'The command by which a person removes it.' }),
  },
  { $id: 'LeftBehind' },
)

const RecoveredServer = t.Object(
  {
    id: t.String(),
    cause: t.String({ description: 'Why its files cannot be had, a sentence.' }),
    lost: t.String({ description: 'What is lost, a sentence.' }),
    ...SIZE,
    left: t.Array(LeftBehind, { description: 'What stays of it on its engine.' }),
  },
  { $id: 'RecoveredServer' },
)

const ARCHIVE = { type: ARCHIVE_TYPE, description: 'The archive.' }

/** Serves `/_berth/servers`: carries single servers out of the instance and into it. */
export const serverFilesRoutes = ({ access, instance, services, stopping }: ControlParts) => {
  const { keys, queries } = services
  const { version, ephemeral } = instance
  const transfers = new ServerTransfers({ ...services, version, ephemeral })
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
    .post(
      '/:serverId/move',
      ({ params: { serverId }, body: { to } }) => transfers.move(serverId, to),
      operation(
        'control.servers.move',
        {
          access: 'admin',
          summary: 'Move a server to another engine',
          description:
            'One of the two places is what this berth runs servers on. The server stops; its files are removed from where they were once the copy was compared with them.',
          success: { 200: MovedServer },
          errors: [404, 502],
        },
        { body: ServerMove },
      ),
    )
    .post(
      '/:serverId/recover',
      ({ params: { serverId }, query: { gone }, request }) =>
        transfers.recover(serverId, request.body === null ? null : readWhole(request.body), gone === 'true'),
      operation(
        'control.servers.recover',
        {
          access: 'admin',
          summary: 'Give a server new files whose own are lost',
          description:
            'As when its node or its engine is gone for good: those of an export in the body, else none. Refused while they can be had. What is left of the old ones stays.',
          takes: ARCHIVE,
          success: { 200: RecoveredServer },
          errors: [400, 404, 502],
        },
        { query: RecoverQuery },
      ),
    )
}
