import { type Static, t } from 'elysia'
import { integer } from '../../contract/schema.ts'
import { parseJsonText } from '../../http/json.ts'
import { Base64Encoding } from '../../resources/exec/model.ts'
import { toIso } from '../../runtime/clock.ts'
import { utf8Text } from '../../runtime/decode.ts'
import type { InboxRow } from './table.ts'

/** A request that an inbox received. */
export const InboxEntry = t.Object(
  {
    id: t.String(),
    inbox: t.String(),
    received_at: t.String({ format: 'date-time' }),
    query: t.String({ description: 'What stood behind the question mark.' }),
    headers: t.Record(t.String(), t.String()),
    body: t.String({ description: 'As text; in base64 where it is no UTF-8.' }),
    encoding: t.Optional(Base64Encoding),
    json: t.Optional(t.Unknown({ description: 'The body as JSON, where it is some.' })),
    verified: t.Nullable(
      t.Boolean({ description: 'Whether the signature is right; null where no known secret can tell.' }),
    ),
    reason: t.String({ description: 'Why.' }),
    webhook_id: t.Nullable(t.String({ description: 'The webhook whose secret made the signature.' })),
    status: integer({ description: 'The status of the response.' }),
  },
  { $id: 'InboxEntry' },
)
export type InboxEntry = Static<typeof InboxEntry>

/** An inbox with at least one request. */
export const InboxSummary = t.Object(
  {
    name: t.String(),
    count: integer(),
    bytes: integer(),
    last_received_at: t.String({ format: 'date-time' }),
  },
  { $id: 'Inbox' },
)
export type InboxSummary = Static<typeof InboxSummary>

/** Converts a row to the public form. */
export function toEntry(row: InboxRow): InboxEntry {
  const text = utf8Text(row.body)
  const json = text === null ? undefined : jsonOf(text)
  return {
    id: row.id,
    inbox: row.name,
    received_at: toIso(row.receivedAt),
    query: row.query,
    headers: row.headers,
    body: text ?? row.body.toString('base64'),
    ...(text === null ? { encoding: 'base64' as const } : {}),
    ...(json === undefined ? {} : { json }),
    verified: row.verified,
    reason: row.reason,
    webhook_id: row.webhookId,
    status: row.status,
  }
}

/** The name of an inbox. Using a name creates the inbox. */
export const InboxName = t.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$',
  title: 'at most 64 letters, digits, ".", "_" and "-", the first one a letter or a digit',
  description: 'The name of an inbox.',
})

/** The response that a sender asks for. */
export const InboxResponse = t.Object(
  {
    respond: t.Optional(
      t.String({
        pattern: '^\\s*[2-5][0-9]{2}\\s*(?:,\\s*[2-5][0-9]{2}\\s*)*$',
        title: 'a status from 200 to 599, or several with commas between them',
        description:
          'The status of the response, or several with commas between, one for each attempt of an event; 200 where left out.',
      }),
    ),
    delay_ms: t.Optional(
      integer({
        minimum: 0,
        maximum: 60_000,
        description: 'Milliseconds of real time by which the response is delayed.',
      }),
    ),
  },
  { additionalProperties: true },
)
export type InboxResponse = Static<typeof InboxResponse>

/** Parses JSON; returns undefined for a text that is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return parseJsonText(text, 'The body')
  } catch {
    return undefined
  }
}
