import { Elysia, type Static, status, t } from 'elysia'
import { badRequest, notFound } from '../errors.ts'
import type { FaultStore } from '../http/faults/store.ts'
import type { FaultRow } from '../http/faults/table.ts'
import { toIso } from '../runtime/clock.ts'
import { Given, Mistake } from '../runtime/given.ts'
import type { ControlAccess } from './access.ts'
import { controlOperation } from './operation.ts'

const FIELDS = {
  id: t.String(),
  match: t.Object({
    operation: t.Optional(t.String()),
    method: t.Optional(t.String()),
    path: t.Optional(t.String()),
    account_id: t.Optional(t.String()),
  }),
  effect: t.Union([
    t.Object({
      error: t.Object({
        status: t.Number(),
        code: t.Optional(t.String()),
        message: t.Optional(t.String()),
      }),
    }),
    t.Object({ delay_ms: t.Number() }),
    t.Object({ disconnect: t.Literal(true) }),
    t.Object({ backend: t.Literal('fail') }),
  ]),
  /** Null for always. */
  times: t.Nullable(t.Number()),
  after: t.Number(),
  probability: t.Number(),
  /** Null where nothing goes by chance. */
  seed: t.Nullable(t.Number()),
  /** Requests that it was for. */
  matched: t.Number(),
  /** Requests that it struck. */
  hits: t.Number(),
  created_at: t.String({ format: 'date-time' }),
}
const Fault = t.Object(FIELDS)
/** A fault, as the control API shows it. */
export type Fault = Static<typeof Fault>
const DeletedFault = t.Object({ ...FIELDS, deleted: t.Literal(true) })

/** Its shape is checked with places and reasons by the reader that fixtures files go through too. */
const FaultCreate = t.Record(t.String(), t.Unknown())

/** `/_berth/faults`: what goes wrong with which requests. */
export const faultsRoutes = (access: ControlAccess, store: FaultStore) =>
  new Elysia({ prefix: '/_berth/faults' })
    .use(access)
    .get(
      '',
      () => ({ faults: store.list().map(shown) }),
      controlOperation('control.faults.list', {
        summary:
          'The faults that hold, in the order in which they are tried, with how often each matched and struck',
        success: { 200: t.Object({ faults: t.Array(Fault) }) },
      }),
    )
    .post(
      '',
      async ({ body }) => {
        const { readFault } = await import('../http/faults/read.ts')
        try {
          return status(201, shown(store.add(readFault(new Given(body)))))
        } catch (error) {
          throw error instanceof Mistake ? badRequest(error.sentence('in the body')) : error
        }
      },
      controlOperation(
        'control.faults.add',
        { summary: 'Have requests fail, wait or be cut off', success: { 201: Fault } },
        { body: FaultCreate },
      ),
    )
    .delete(
      '',
      () => ({ deleted: store.clear() }),
      controlOperation('control.faults.clear', {
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
      controlOperation('control.faults.delete', {
        summary: 'Remove a fault; the answer has its last counts',
        success: { 200: DeletedFault },
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
