import { Elysia, status, t } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { integer, oneOf } from '../../contract/schema.ts'
import { KEPT_UNDOS } from '../names.ts'
import type { ControlParts } from './parts.ts'
import { Outbound } from './server-network.ts'

export const Snapshot = t.Object(
  {
    name: t.String(),
    created_at: t.String({ format: 'date-time' }),
    version: t.String({ description: 'The version of berth that made it.' }),
    schema: integer({ description: 'The number of its database schema.' }),
    bytes: t.Number(),
  },
  { $id: 'Snapshot' },
)

const SnapshotCreate = t.Object(
  {
    name: t.String({
      pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$',
      title: '1 to 100 letters, digits, dots, underscores and hyphens, with no dot first',
    }),
  },
  { $id: 'SnapshotCreate', additionalProperties: false },
)

const Change = oneOf(['added', 'removed', 'changed'], { $id: 'DifferenceKind' })
const Counts = {
  added: integer({ minimum: 0 }),
  removed: integer({ minimum: 0 }),
  changed: integer({ minimum: 0 }),
}

const ItemDifference = t.Object(
  {
    change: Change,
    id: t.String(),
    name: t.Nullable(t.String()),
    fields: t.Array(t.String(), { description: 'Of a changed one: which of its columns differ.' }),
  },
  { $id: 'ItemDifference' },
)

const KindDifferences = t.Object(
  {
    kind: t.String({ description: 'Such as `servers` or `tasks`.' }),
    ...Counts,
    items: t.Array(ItemDifference, { description: 'At most 100.' }),
  },
  { $id: 'KindDifferences' },
)

const FileDifference = t.Object({ change: Change, path: t.String() }, { $id: 'FileDifference' })

const FileDifferences = t.Object(
  {
    server_id: t.String(),
    ...Counts,
    files: t.Array(FileDifference, { description: 'At most 100.' }),
    is_complete: t.Boolean({
      description: 'Whether all files were looked at: 100,000 are, in directories that berth may read.',
    }),
  },
  { $id: 'FileDifferences' },
)

const SnapshotDiff = t.Object(
  {
    from: t.String({ description: 'The name of the snapshot.' }),
    to: t.Nullable(t.String(), { description: 'The name of the other one; null for the current state.' }),
    kinds: t.Array(KindDifferences, { description: 'The kinds of things of which some differ.' }),
    files: t.Array(FileDifferences, {
      description: 'The servers of which files differ in size, mode or time, or were not all looked at.',
    }),
  },
  { $id: 'SnapshotDiff' },
)

const DiffQuery = t.Object({
  to: t.Optional(t.String({ description: 'Another snapshot; without it, the current state.' })),
})

const ReplacementBody = t.Optional(
  t.Object(
    {
      undo: t.Optional(
        t.Boolean({
          description: `Saves the state as a snapshot first. The last ${KEPT_UNDOS} such are kept.`,
        }),
      ),
    },
    { $id: 'StateReplacement', additionalProperties: false },
  ),
)

const Undo = t.Optional(
  t.String({ description: 'The name of the snapshot of the state before, with `undo`.' }),
)

const OutboundRule = t.Object(
  {
    server_id: t.String(),
    outbound: t.Nullable(Outbound, { description: "null: the instance's default." }),
    hosts: t.Nullable(t.Array(t.String()), { description: "null: the instance's default." }),
  },
  { $id: 'OutboundRule' },
)

const ResetResult = t.Object(
  { reset: t.Literal(true), took_ms: t.Number(), undo: Undo },
  { $id: 'ResetResult' },
)

const RestoreResult = t.Object(
  {
    restored: t.String(),
    took_ms: t.Number(),
    undo: Undo,
    outbound_rules: t.Array(OutboundRule, {
      description: 'What the restored state sets for the networks of single servers. It holds now.',
    }),
  },
  { $id: 'RestoreResult' },
)

const DeletedSnapshot = t.Object({ name: t.String(), deleted: t.Literal(true) }, { $id: 'DeletedSnapshot' })

/** `/_berth/reset` and `/_berth/snapshots`: the state of the instance as a whole. */
export const statesRoutes = ({ access, states, services: { changes } }: ControlParts) =>
  new Elysia({ prefix: '/_berth' })
    .use(access)
    .post(
      '/reset',
      async ({ body }) => ({
        reset: true as const,
        ...(await states.reset({ undo: body?.undo ?? false })),
      }),
      operation(
        'control.instance.reset',
        {
          access: 'admin',
          summary: 'Reset the instance; the first account with its first key stays, and so do snapshots',
          description:
            'Ends all processes and applies the fixtures files again. Takes milliseconds: made to be called between tests.',
          success: { 200: ResetResult },
          errors: [502, 503],
        },
        { body: ReplacementBody },
      ),
    )
    .get(
      '/snapshots',
      () => ({ snapshots: states.snapshots() }),
      operation('control.snapshots.list', {
        access: 'admin',
        summary: 'The snapshots, newest first',
        description: 'Each has its size and the time at which it was made.',
        success: { 200: listOf('snapshots', Snapshot) },
      }),
    )
    .post(
      '/snapshots',
      async ({ body }) => {
        const snapshot = await states.save(body.name)
        changes.notify('snapshot', snapshot.name, null)
        return status(201, snapshot)
      },
      operation(
        'control.snapshots.create',
        {
          access: 'admin',
          summary: 'Keep the whole state, files included, under a name',
          description: 'A snapshot of the same name is replaced.',
          success: { 201: Snapshot },
          errors: [502],
        },
        { body: SnapshotCreate },
      ),
    )
    .get(
      '/snapshots/:name/diff',
      async ({ params: { name }, query: { to = null } }) => ({
        from: name,
        to,
        ...(await states.compare(name, to)),
      }),
      operation(
        'control.snapshots.diff',
        {
          access: 'admin',
          summary: 'What differs between a snapshot and now, or another snapshot',
          description:
            'Counts what was added, removed and changed since the snapshot, by kind, and the files by server. Lists are cut after 100, and of each kind the newest 20,000 are compared.',
          success: { 200: SnapshotDiff },
          errors: [400, 404],
        },
        { query: DiffQuery },
      ),
    )
    .post(
      '/snapshots/:name/restore',
      async ({ params, body }) => ({
        restored: params.name,
        ...(await states.restore(params.name, { undo: body?.undo ?? false })),
      }),
      operation(
        'control.snapshots.restore',
        {
          access: 'admin',
          summary: 'Put a snapshot in place of the state, whole or not at all',
          description:
            'Ends all processes, puts the snapshot in place, and starts the servers that ran. If it fails, the state stays as it was. What single servers may reach is part of the snapshot.',
          success: { 200: RestoreResult },
          errors: [404, 502, 503],
        },
        { body: ReplacementBody },
      ),
    )
    .delete(
      '/snapshots/:name',
      async ({ params }) => {
        await states.removeSnapshot(params.name)
        changes.notify('snapshot', params.name, null)
        return { name: params.name, deleted: true as const }
      },
      operation('control.snapshots.delete', {
        access: 'admin',
        summary: 'Remove a snapshot',
        description: 'The state itself stays as it is.',
        success: { 200: DeletedSnapshot },
        errors: [400, 404],
      }),
    )
