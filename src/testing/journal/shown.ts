import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import type { OwnClient } from '../../http/own-client.ts'
import { toIso } from '../../runtime/clock.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import type { Masks } from '../../runtime/masks.ts'
import type { FaultEffect } from '../faults/fault.ts'
import { BodySchema } from './body-schema.ts'
import {
  addressOf,
  bodyText,
  type HeaderField,
  headerFields,
  type JournalEntry,
  jsonOf,
  type KeptBody,
} from './entry.ts'
import { type LearnSecret, Masking, type ShownBody } from './mask.ts'
import { type NearMiss, nearMisses } from './near-misses.ts'

/** Longest response, in bytes, that is searched for its summary. @bound reader */
const MAX_SAID = 16 * 1024

/** A body in the journal's output. */
interface ShownBodyPart {
  /** The value of JSON, else text; null if secrets in it cannot be found. */
  body: ShownBody
  /** Whether the body was longer than its kept part. */
  truncated: boolean
}

/** A request in the journal's output. */
export interface ShownEntry {
  /** The `x-request-id` of the response. */
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
  /** Which of berth's own clients sent it; null for any other. */
  client: OwnClient | null
  /** Whether the client disconnected before the response. */
  aborted: boolean
  /** Missing if bodies are left out; null without a body. */
  request?: ShownBodyPart | null
  response?: ShownBodyPart | null
  /** What the response says in short, also without its body; null if it says none of it. */
  said: SaidInShort | null
  /** By their names in lower case. */
  request_headers: Record<string, string>
  response_headers: Record<string, string>
  /** The faults that applied to it, also those that were removed since: all delays, then the other effect. */
  faults: { fault_id: string; effect: FaultEffect }[]
  /** The content type of the response, such as `text/event-stream`; null if there is none. */
  response_type: string | null
  near_misses: NearMiss[]
}

/** A request in the journal's output with its bodies. */
export type WholeEntry = ShownEntry & Required<Pick<ShownEntry, 'request' | 'response'>>

/** How entries are shown. */
export interface EntryStyle {
  operations: OperationIndex<DescribedOperation>
  /** Secret values, such as those of variables. */
  known: Masks
  /** Whether the bodies of request and response are shown. */
  bodies: boolean
  /** Receives the credentials that are found in the entry. */
  learn?: LearnSecret
}

/** Converts an entry to the journal's output: it masks secrets, names the operation, and adds near misses. */
export function shownEntry(entry: JournalEntry, style: EntryStyle & { bodies: true }): WholeEntry
export function shownEntry(entry: JournalEntry, style: EntryStyle): ShownEntry
export function shownEntry(
  entry: JournalEntry,
  { operations, known, bodies, learn }: EntryStyle,
): ShownEntry {
  const { path, query } = addressOf(entry)
  // The operation of a HEAD is that of GET.
  const operation = operations.match(entry.method === 'HEAD' ? 'GET' : entry.method, path)
  const sent = entry.request
  const body = sent === null || sent.isCut ? undefined : jsonOf(bodyText(sent.content))
  const masking = new Masking(known, learn)
  const bodyOf = (kept: KeptBody | null, shape: BodySchema | null): ShownBodyPart | null =>
    kept === null
      ? null
      : {
          body: masking.body({ text: bodyText(kept.content), isCut: kept.isCut, shape }),
          truncated: kept.isCut,
        }
  const { method, status, caller } = entry
  const found = nearMisses(
    { method, path, query: new URLSearchParams(query), status, operation, body },
    operations,
  )
  // The order matters: secrets of the request are masked in everything after it.
  const requestHeaders = masking.headers(headerFields(entry.requestHeaders))
  const shownQuery = masking.query(query)
  const request = bodyOf(sent, new BodySchema(operation?.body ?? {}))
  // Only short responses have a summary for lists.
  const isShort = (entry.response?.content.length ?? 0) <= MAX_SAID
  const response = bodies || isShort ? bodyOf(entry.response, null) : null
  const shownBodies = bodies ? { request, response } : {}
  return {
    id: entry.id,
    at: toIso(entry.at),
    method,
    path: masking.path(path) + shownQuery,
    status,
    ms: Math.round(entry.ms * 100) / 100,
    operation: operation?.id ?? null,
    account_id: caller?.accountId ?? null,
    api_key_id: caller?.credentialId ?? null,
    client: entry.client,
    aborted: entry.aborted,
    ...shownBodies,
    said: response === null ? null : saidInShort(method, status, response.body),
    request_headers: requestHeaders,
    response_headers: masking.headers(responseFields(entry)),
    faults: entry.faults.map(({ id, effect }) => ({ fault_id: id, effect })),
    response_type: entry.responseType === '' ? null : entry.responseType,
    near_misses: found.map(({ at, message, ...rest }) => ({
      ...rest,
      at: masking.text(at),
      message: masking.text(message),
    })),
  }
}

/** Returns the headers of a response. Elysia adds the type of a value only when it sends it. */
function responseFields({ responseHeaders, responseType }: JournalEntry): readonly HeaderField[] {
  const fields = headerFields(responseHeaders)
  const isTyped = responseType === '' || fields.some(([name]) => name === 'content-type')
  return isTyped ? fields : [['content-type', responseType], ...fields]
}

/** The summary of a response, so that lists need no bodies. */
interface SaidInShort {
  /** The code and the message of a failure (specification, "Errors"). */
  readonly error: string | null
  readonly message: string | null
  /** The server that the response names. */
  readonly server_id: string | null
  /** Ids of the objects that the request made. */
  readonly made: string[]
}

/** Returns the summary of a response; null if it has no part of one. */
function saidInShort(method: string, status: number, body: ShownBody): SaidInShort | null {
  const { error, message, server_id: serverId, ...rest } = fieldsOf(body)
  const isFailure = status >= 400
  const said = {
    error: isFailure ? textOf(error) : null,
    message: isFailure ? textOf(message) : null,
    server_id: textOf(serverId),
    made: method === 'GET' || method === 'HEAD' || status >= 300 ? [] : madeIn(rest),
  }
  return said.made.length > 0 || Object.values(said).some((one) => typeof one === 'string') ? said : null
}

const madeIn = ({ id, task_id: taskId, build_id: buildId, terminal }: Record<string, unknown>): string[] =>
  [id, taskId, buildId, fieldsOf(terminal).id].filter((one) => typeof one === 'string')

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
