import { eq } from 'drizzle-orm'
import { Elysia, type Static, status, t } from 'elysia'
import { DeletedCount, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { inPart } from '../../contract/request.ts'
import { badRequest, notFound } from '../../errors.ts'
import { webhooks } from '../../resources/webhooks/table.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import { FaultEffect, FaultMatch, FaultText, normalizeFault } from '../faults/fault.ts'
import type { FaultRow } from '../faults/table.ts'
import { checkAccount } from './account.ts'
import type { ControlParts } from './parts.ts'

const FIELDS = {
  id: t.String(),
  match: FaultMatch,
  effect: FaultEffect,
  times: t.Nullable(t.Number({ description: 'Requests that it applies to; null for all.' })),
  after: t.Number({ description: 'Requests that it lets pass first.' }),
  probability: t.Number(),
  seed: t.Nullable(t.Number({ description: 'Null where nothing goes by chance.' })),
  matched: t.Number({ description: 'Requests that it was for.' }),
  hits: t.Number({ description: 'Requests that it applied to.' }),
  created_at: t.String({ format: 'date-time' }),
}
export const Fault = t.Object(FIELDS, { $id: 'Fault' })
/** A fault, as the control API shows it. */
export type Fault = Static<typeof Fault>
const DeletedFault = t.Object({ ...FIELDS, deleted: t.Literal(true) }, { $id: 'DeletedFault' })

/** Serves `/_berth/faults`: faults of requests to the API. */
export const faultsRoutes = ({ access, services: { faults: store, queries } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/faults' })
    .use(access)
    .get(
      '',
      () => ({ faults: store.list().map(shownFault) }),
      operation('control.faults.list', {
        access: 'admin',
        summary:
          'The faults that hold, in the order in which they are tried, with how often each matched and applied',
        description:
          'If several faults match a request, all their delays apply, and then the first other effect.',
        success: { 200: listOf('faults', Fault) },
      }),
    )
    .post(
      '',
      ({ body }) => {
        const fault = inPart('body', () => normalizeFault(body))
        // A fault for an unknown account or webhook would never apply.
        checkWebhook(queries, fault.match.deliveries?.webhook_id)
        checkAccount(queries, fault.match.account_id, '"match.account_id" in the body')
        return status(201, shownFault(store.add(fault)))
      },
      operation(
        'control.faults.add',
        {
          access: 'admin',
          summary: 'Have requests, or deliveries to webhooks, fail, wait or be cut off',
          description:
            'Matching requests get an error or a response of any kind, wait, lose their connection or their response, or meet a compute backend that fails. One fault has one effect. With `match.deliveries` it is attempts to deliver events that meet it, in place of requests. The control API itself has no faults, and requests of the dashboard meet only those that name it by `match.client`.',
          success: { 201: Fault },
        },
        { body: FaultText },
      ),
    )
    .delete(
      '',
      () => ({ deleted: store.clear() }),
      operation('control.faults.clear', {
        access: 'admin',
        summary: 'Remove all faults',
        description: 'Requests that a fault delays continue.',
        success: { 200: DeletedCount },
      }),
    )
    .delete(
      '/:faultId',
      ({ params }) => {
        const row = store.remove(params.faultId)
        if (!row) throw notFound(`The fault "${params.faultId}"`)
        return { ...shownFault(row), deleted: true as const }
      },
      operation('control.faults.delete', {
        access: 'admin',
        summary: 'Remove a fault',
        description: 'The response has its last counts.',
        success: { 200: DeletedFault },
        errors: [404],
      }),
    )

/** @throws BerthError 400 if a webhook does not exist; undefined passes */
function checkWebhook(queries: Queries, id: string | undefined): void {
  if (id === undefined) return
  const known = queries.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.id, id)).get()
  if (!known)
    throw badRequest(`"match.deliveries.webhook_id" in the body: there is no webhook ${JSON.stringify(id)}.`)
}

/** Converts a row to the control API's fault. */
export const shownFault = ({ id, fault, matched, hits, createdAt }: FaultRow): Fault => ({
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
