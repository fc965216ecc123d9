import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Masks } from '../../runtime/masks.ts'
import { addressOf, type Entry, jsonOf, type KeptBody, textOf } from './entry.ts'
import { Hiding, type ShownBody } from './mask.ts'
import { type NearMiss, nearMisses } from './near-misses.ts'
import { Shape } from './shape.ts'

/** A body as the journal shows it. */
export interface Body {
  /** The value of JSON, else text; null where it may hold secrets that cannot be told from the rest. */
  body: ShownBody
  /** Whether it was longer than what is kept. */
  truncated: boolean
}

/** A request as the journal shows it. */
export interface ShownEntry {
  /** The `x-request-id` of its answer. */
  id: string
  at: string
  method: string
  /** With its query. */
  path: string
  status: number
  ms: number
  operation: string | null
  account_id: string | null
  api_key_id: string | null
  /** Whether the client had gone before there was an answer. */
  aborted: boolean
  request: Body | null
  response: Body | null
  /** The content type of the answer, such as `text/event-stream`; null where there is none. */
  response_type: string | null
  near_misses: NearMiss[]
}

/**
 * Makes of a kept request what is shown: masked, understood by the operations there are, with what nearly was right.
 *
 * @param known values that are secret, such as those of variables
 */
export function shownEntry(
  entry: Entry,
  operations: OperationIndex<DescribedOperation>,
  known: Masks,
): ShownEntry {
  const { path, query } = addressOf(entry)
  // HEAD comes with GET.
  const operation = operations.match(entry.method === 'HEAD' ? 'GET' : entry.method, path)
  const sent = entry.request
  const body = sent === null || sent.cut ? undefined : jsonOf(textOf(sent.content))
  const hiding = new Hiding(known)
  const bodyOf = (kept: KeptBody | null, shape: Shape | null): Body | null =>
    kept === null
      ? null
      : {
          body: hiding.body({ text: textOf(kept.content), isCut: kept.cut, shape }),
          truncated: kept.cut,
        }
  const { method, status, caller } = entry
  const found = nearMisses(
    { method, path, query: new URLSearchParams(query), status, operation, body },
    operations,
  )
  // In this order: what the request held as a secret is hidden in all that follows.
  const shownQuery = hiding.query(query)
  const request = bodyOf(sent, new Shape(operation?.body ?? {}))
  return {
    id: entry.id,
    at: toIso(entry.at),
    method,
    path: hiding.text(path) + shownQuery,
    status,
    ms: Math.round(entry.ms * 100) / 100,
    operation: operation?.id ?? null,
    account_id: caller?.accountId ?? null,
    api_key_id: caller?.credentialId ?? null,
    aborted: entry.aborted,
    request,
    response: bodyOf(entry.response, null),
    response_type: entry.responseType === '' ? null : entry.responseType,
    near_misses: found.map(({ at, message, ...rest }) => ({
      ...rest,
      at: hiding.text(at),
      message: hiding.text(message),
    })),
  }
}
