import { type Static, t } from 'elysia'
import { ApiOperation } from '../../contract/model.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import { flagSchema, integer, worded } from '../../contract/schema.ts'
import { toIso } from '../../runtime/clock.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { Pace } from '../../runtime/pace.ts'
import { addressOf, bodyText, type JournalEntry, jsonOf } from '../journal/entry.ts'
import type { RequestJournal } from '../journal/journal.ts'

/** Schema of a filter by status. */
export const StatusFilter = t.String({
  pattern: '^[1-5](?:[0-9][0-9]|xx)$',
  title: 'a status such as 404, or 4xx for all of its hundred',
  description: 'One status, or a hundred of them, such as `4xx`.',
})

/** Schema of a filter by operation. */
export const OperationFilter = worded(ApiOperation, 'the id of an operation, such as exec.run')

/** The first status of a failure. */
const FIRST_FAILURE = 400

/** Most groups that are listed. @bound reader */
const MOST_GROUPS = 1_000

/** Failures of one operation with one code. */
export const RequestErrors = t.Object(
  {
    operation: t.Nullable(t.String(), { description: 'Null for a path that leads nowhere.' }),
    method: t.String(),
    status: integer(),
    code: t.Nullable(t.String(), { description: 'The `error` of the responses; null if they have none.' }),
    count: integer({ minimum: 1 }),
    first_at: t.String({ format: 'date-time' }),
    last_at: t.String({ format: 'date-time' }),
    last_id: t.String({ description: 'The latest of these requests.' }),
  },
  { $id: 'RequestErrors' },
)
export type RequestErrors = Static<typeof RequestErrors>

/** Which requests to group. */
export const RequestErrorsQuery = t.Object(
  {
    account_id: t.Optional(t.String()),
    operation: t.Optional(OperationFilter),
    status: t.Optional(StatusFilter),
    own: t.Optional(flagSchema("Only those of berth's own clients, or only those of all others.")),
  },
  { additionalProperties: false },
)
type RequestErrorsQuery = Static<typeof RequestErrorsQuery>

/** Groups the failures of the journal by operation, method, status and code; the group with the latest first. */
export async function groupErrors(
  journal: RequestJournal,
  operations: OperationIndex<DescribedOperation>,
  { account_id, own, operation: wanted, status: wantedStatus }: RequestErrorsQuery,
): Promise<RequestErrors[]> {
  const [from, to] = wantedStatus === undefined ? [FIRST_FAILURE, 1_000] : statusRange(wantedStatus)
  const groups = new Map<string, RequestErrors>()
  const pace = new Pace()
  for (const { entry } of journal.newest()) {
    if (pace.due) await pace.rest()
    if (entry.status < Math.max(FIRST_FAILURE, from) || entry.status > to) continue
    if (own !== undefined && (entry.client !== null) !== (own === 'true')) continue
    if (account_id !== undefined && entry.caller?.accountId !== account_id) continue
    const { method, status } = entry
    const operation = operations.match(method === 'HEAD' ? 'GET' : method, addressOf(entry).path)?.id ?? null
    if (wanted !== undefined && operation !== wanted) continue
    const code = codeOf(entry)
    const key = JSON.stringify([operation, method, status, code])
    const at = toIso(entry.at)
    const group = groups.get(key)
    if (group === undefined) {
      if (groups.size === MOST_GROUPS) continue
      const seen = { count: 1, first_at: at, last_at: at, last_id: entry.id }
      groups.set(key, { operation, method, status, code, ...seen })
    } else {
      group.count += 1
      group.first_at = at
    }
  }
  return [...groups.values()]
}

/** Returns the `error` of a response, if it has one that is a word. */
function codeOf({ response }: JournalEntry): string | null {
  if (response === null || response.isCut) return null
  const body = jsonOf(bodyText(response.content))
  const { error } = fieldsOf(body)
  // Faults respond with any text, which may hold a secret.
  return typeof error === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(error) ? error : null
}

/** Returns the statuses that a filter means: one, or a hundred. */
export function statusRange(status: string): [from: number, to: number] {
  const hundred = Number(status[0]) * 100
  return status.endsWith('xx') ? [hundred, hundred + 99] : [Number(status), Number(status)]
}
