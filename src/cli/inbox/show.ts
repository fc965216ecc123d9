import type { InboxEntry } from '../../testing/inbox/model.ts'
import type { Client } from '../client.ts'
import { untilInterrupted } from '../interrupt.ts'
import { paint, printable } from '../output.ts'
import { path } from '../path.ts'
import { printJson, type Session } from '../session.ts'
import { plain } from '../tasks/plain.ts'
import type { Sink } from '../terminal.ts'

/** Headers that every client sends: they say nothing of what was sent. */
const ORDINARY: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'host',
  'transfer-encoding',
])

/** How an inbox is shown. */
interface ShowOptions {
  limit?: number
  follow?: boolean
  json?: boolean
}

/**
 * Shows what an inbox got, oldest first, and goes on with what comes where that is wished for.
 *
 * @returns the exit code
 */
export async function showInbox(
  session: Session,
  client: Client,
  name: string,
  { limit, follow, json }: ShowOptions,
): Promise<number> {
  const { stdout } = session.terminal
  const target = path`/_berth/inbox/${name}`
  const query = limit === undefined ? {} : { limit: String(limit) }
  const answer = await client.request<{ entries: InboxEntry[] }>('GET', target, { query })
  if (json && !follow) {
    await printJson(session, answer)
    return 0
  }
  const show = (entry: InboxEntry): Promise<void> =>
    json ? printJson(session, entry) : stdout.write(entryText(stdout, entry))
  for (const entry of answer.entries.toReversed()) await show(entry)
  if (follow)
    return untilInterrupted((signal) => followOn(client, target, answer.entries[0]?.id, show, signal))
  if (answer.entries.length === 0) await stdout.write(`Nothing yet. It is at ${client.baseUrl}${target}.\n`)
  return 0
}

async function followOn(
  client: Client,
  target: string,
  after: string | undefined,
  show: (entry: InboxEntry) => Promise<void>,
  signal: AbortSignal,
): Promise<number> {
  const query = { follow: 'true', after: after ?? 'start' }
  for await (const { data } of client.events('GET', target, { query, signal }))
    await show(JSON.parse(data) as InboxEntry)
  return 0
}

/** An entry in full. */
function entryText(sink: Sink, entry: InboxEntry): string {
  const { id, received_at, verified, reason, status, query, headers } = entry
  const [mark, style] =
    verified === null
      ? (['?', 'yellow'] as const)
      : verified
        ? (['✓', 'green'] as const)
        : (['✗', 'red'] as const)
  const head = [
    paint(sink, 'bold', id),
    received_at,
    `answered ${status}`,
    query === '' ? '' : `?${printable(query)}`,
  ]
  const lines = Object.entries(headers)
    .filter(([name]) => !ORDINARY.has(name))
    .map(([name, value]) => `  ${paint(sink, 'dim', `${printable(name)}:`)} ${printable(value)}`)
  return [
    head.filter(Boolean).join('  '),
    `  ${paint(sink, style, `${mark} ${reason}`)}`,
    ...lines,
    ...bodyText(entry)
      .split('\n')
      .map((line) => `  ${line}`.trimEnd()),
    '',
    '',
  ].join('\n')
}

function bodyText({ body, json, encoding }: InboxEntry): string {
  if (json !== undefined) return plain(JSON.stringify(json, null, 2))
  if (body === '') return '(no body)'
  return encoding ? `(${encoding}) ${body}` : plain(body.trimEnd())
}
