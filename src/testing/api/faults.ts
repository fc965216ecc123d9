import { Elysia, type Static, status, t } from 'elysia'
import { Given, Mistake } from '../../contract/given.ts'
import { operation } from '../../contract/operation.ts'
import { documented, integer } from '../../contract/schema.ts'
import { badRequest, notFound } from '../../errors.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import type { FaultStore } from '../faults/store.ts'
import type { FaultRow } from '../faults/table.ts'
import type { ControlAccess } from './access.ts'
import { checkAccount } from './account.ts'

const FaultMatch = t.Object(
  {
    operation: t.Optional(t.String({ description: 'The id of an operation of the API, such as exec.run.' })),
    method: t.Optional(t.String()),
    path: t.Optional(
      t.String({
        description: 'A path or a glob: `*` or `{id}` is what stands between two slashes, `**` anything.',
      }),
    ),
    account_id: t.Optional(t.String({ description: 'The account whose key the request carries.' })),
  },
  {
    $id: 'FaultMatch',
    additionalProperties: false,
    description: 'Which requests; what is left out does not matter.',
  },
)

const FaultEffect = t.Union(
  [
    t.Object(
      {
        error: t.Object(
          {
            status: t.Number({ minimum: 400, maximum: 599 }),
            code: t.Optional(t.String({ description: 'By default what the API says with this status.' })),
            message: t.Optional(t.String()),
          },
          { additionalProperties: false },
        ),
      },
      { additionalProperties: false, description: 'It is answered so, and nothing is done.' },
    ),
    t.Object({ delay_ms: t.Number() }, { additionalProperties: false, description: 'It waits first.' }),
    t.Object(
      { disconnect: t.Literal(true) },
      { additionalProperties: false, description: 'Its connection is cut, without an answer.' },
    ),
    t.Object(
      { backend: t.Literal('fail') },
      {
        additionalProperties: false,
        description: 'The compute driver fails whatever the request, and work that it begins, asks of it.',
      },
    ),
  ],
  { $id: 'FaultEffect' },
)

const FIELDS = {
  id: t.String(),
  match: FaultMatch,
  effect: FaultEffect,
  times: t.Nullable(t.Number({ description: 'Requests that it strikes; null for all.' })),
  after: t.Number({ description: 'Requests that it lets pass first.' }),
  probability: t.Number(),
  seed: t.Nullable(t.Number({ description: 'Null where nothing goes by chance.' })),
  matched: t.Number({ description: 'Requests that it was for.' }),
  hits: t.Number({ description: 'Requests that it struck.' }),
  created_at: t.String({ format: 'date-time' }),
}
const Fault = t.Object(FIELDS, { $id: 'Fault' })
/** A fault, as the control API shows it. */
export type Fault = Static<typeof Fault>
const DeletedFault = t.Object({ ...FIELDS, deleted: t.Literal(true) }, { $id: 'DeletedFault' })

/** Its shape is checked with places and reasons by the reader that fixtures files go through too. */
const FaultCreate = documented(
  t.Object(
    {
      match: FaultMatch,
      effect: FaultEffect,
      times: t.Optional(integer({ minimum: 1, description: 'Requests that it strikes; without it all.' })),
      after: t.Optional(integer({ minimum: 0, description: 'Requests that it lets pass first.' })),
      probability: t.Optional(t.Number({ minimum: 0, maximum: 1 })),
      seed: t.Optional(
        integer({ minimum: 0, description: 'Of the chance: the same seed strikes the same.' }),
      ),
    },
    { $id: 'FaultCreate', additionalProperties: false },
  ),
)

/** What the calls about faults need. */
export interface FaultParts {
  queries: Queries
  faults: FaultStore
}

/** `/_berth/faults`: what goes wrong with which requests. */
export const faultsRoutes = (access: ControlAccess, { faults: store, queries }: FaultParts) =>
  new Elysia({ prefix: '/_berth/faults' })
    .use(access)
    .get(
      '',
      () => ({ faults: store.list().map(shown) }),
      operation('control.faults.list', {
        access: 'admin',
        summary:
          'The faults that hold, in the order in which they are tried, with how often each matched and struck',
        success: { 200: t.Object({ faults: t.Array(Fault) }) },
      }),
    )
    .post(
      '',
      async ({ body }) => {
        const { readFault } = await import('../faults/read.ts')
        try {
          const fault = readFault(new Given(body))
          // One that is for nobody would strike nobody, and a test would wonder.
          checkAccount(queries, fault.match.account_id, '"match.account_id" in the body')
          return status(201, shown(store.add(fault)))
        } catch (error) {
          throw error instanceof Mistake ? badRequest(error.sentence('in the body')) : error
        }
      },
      operation(
        'control.faults.add',
        { access: 'admin', summary: 'Have requests fail, wait or be cut off', success: { 201: Fault } },
        { body: FaultCreate },
      ),
    )
    .delete(
      '',
      () => ({ deleted: store.clear() }),
      operation('control.faults.clear', {
        access: 'admin',
        summary: 'Remove all faults',
        success: { 200: t.Object({ deleted: t.Number() }) },
      }),
    )
    .delete(
      '/:faultId',
      ({ params }) => {
        const row = store.remove(params.faultId)
        if (!row) throw notFound(`The fault "${params.faultId}"`)
        return { ...shown(row), deleted: true as const }
      },
      operation('control.faults.delete', {
        access: 'admin',
        summary: 'Remove a fault; the answer has its last counts',
        success: { 200: DeletedFault },
        errors: [404],
      }),
    )

const shown = ({ id, fault, matched, hits, createdAt }: FaultRow): Fault => ({
  id,
  match: fault.match,
  effect: fault.effect,
  times: fault.times ?? null,
  after: fault.after ?? 0,
  probability: fault.probability ?? 1,
  seed: fault.seed ?? null,
  matched,
  hits,
  created_at: toIso(createdAt),
})
